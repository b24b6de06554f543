// The screen of a terminal: characters, the cursor, modes and what a guest may ask.
import { clamp, Grid, PLAIN } from './grid.js';
import { styled } from './styles.js';

const LINES = 'abcdefghijklmnopqrstuvwxyz`{|}~';
const DRAWN = '▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥◆π≠£·';
const WIDE = /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;
const ADDED = /^[\p{Mn}\p{Me}\u200b-\u200d\ufe0f]/u;
const AFTER_WIDE = Object.freeze({ text: '', style: PLAIN });

export class Screen extends Grid {
    // Calls `reply` with what the guest asked for, `scrolledAway` with each row that leaves the main
    // screen's top, and `said` with each character that is not on a screen of a program's own.
    constructor(columns, rows, { reply = () => {}, scrolledAway = () => {}, said = () => {} } = {}) {
        super();
        this._on = { reply, scrolledAway, said };
        this.columns = columns;
        this.rows = rows;
        this.reset();
    }

    reset() {
        this.softReset();
        this.row = 0;
        this.column = 0;
        this.lines = this._blankRows();
        this._main = null;
        this._last = '';
        this._tabs = new Set(Array.from({ length: 64 }, (_, index) => 8 * index));
    }

    // Leaves what is shown, and the cursor.
    softReset() {
        this.style = PLAIN;
        this.modes = { applicationKeys: false, bracketedPaste: false, cursor: true, insert: false, wrap: true, origin: false };
        this._saved = null;
        this._charsets = ['B', 'B'];
        this._shifted = 0;
        this._pending = false;
        this._full();
        this.changed = true;
    }

    // --- characters

    print(character) {
        this.changed = true;
        if (ADDED.test(character)) return this._add(character);
        const shown = this._charsets[this._shifted] === '0' && LINES.includes(character) ? DRAWN[LINES.indexOf(character)] : character;
        const width = WIDE.test(shown) ? 2 : 1;
        if (this._pending || this.column + width > this.columns) {
            if (this.modes.wrap) this.nextLine();
            else this.column = this.columns - width;
        }
        this._pending = false;
        if (this.modes.insert) this.insertCharacters([width]);
        const line = this.lines[this.row];
        this._part(line, this.column);
        this._part(line, this.column + width);
        line[this.column] = { text: shown, style: this.style };
        if (width === 2 && this.column + 1 < this.columns) line[this.column + 1] = AFTER_WIDE;
        this._last = character;
        if (!this._main) this._on.said(shown);
        this.column += width;
        if (this.column >= this.columns) {
            this.column = this.columns - 1;
            this._pending = true;
        }
        return undefined;
    }

    // Of a wide character whose other half is written over nothing is left.
    _part(line, column) {
        if (line[column]?.text === '') line.splice(column - 1, 2, ...this._blanks(2));
    }

    _add(character) {
        const line = this.lines[this.row];
        let at = this._pending ? this.column : this.column - 1;
        while (at > 0 && line[at].text === '') at -= 1;
        if (at >= 0 && line[at].text.length < 16) line[at] = { ...line[at], text: line[at].text + character };
    }

    repeat([count = 1]) {
        for (let left = Math.min(count, this.columns * this.rows); left > 0 && this._last; left -= 1) this.print(this._last);
    }

    charset(number, name) { this._charsets[number] = name; }

    shiftOut() { this._shifted = 1; }

    shiftIn() { this._shifted = 0; }

    attributes(numbers) { this.style = styled(this.style, numbers); }

    // --- the cursor

    _move(row, column) {
        const [top, bottom] = this.modes.origin ? [this._top, this._bottom] : [0, this.rows - 1];
        this.row = clamp(row, top, bottom);
        this.column = clamp(column, 0, this.columns - 1);
        this._pending = false;
        this.changed = true;
    }

    to([row = 1, column = 1]) {
        const first = this.modes.origin ? this._top : 0;
        this._move(first + Math.max(row, 1) - 1, Math.max(column, 1) - 1);
    }

    toRow([row = 1]) { this.to([row, this.column + 1]); }

    toColumn([column = 1]) { this._move(this.row, Math.max(column, 1) - 1); }

    up([count = 1]) { this._move(Math.max(this.row - (count || 1), this.row < this._top ? 0 : this._top), this.column); }

    down([count = 1]) { this._move(Math.min(this.row + (count || 1), this.row > this._bottom ? this.rows - 1 : this._bottom), this.column); }

    right([count = 1]) { this._move(this.row, this.column + (count || 1)); }

    left([count = 1]) { this._move(this.row, this.column - (count || 1)); }

    downToStart(numbers) { this.down(numbers); this.carriageReturn(); }

    upToStart(numbers) { this.up(numbers); this.carriageReturn(); }

    backspace() { this._move(this.row, this.column - 1); }

    carriageReturn() { this._move(this.row, 0); }

    tab([count = 1] = []) {
        for (let left = count || 1; left > 0; left -= 1) {
            const next = [...this._tabs].filter((one) => one > this.column).sort((one, other) => one - other)[0];
            this._move(this.row, next ?? this.columns - 1);
        }
    }

    tabBack([count = 1]) {
        for (let left = count || 1; left > 0; left -= 1) this._move(this.row, Math.max(0, ...[...this._tabs].filter((one) => one < this.column)));
    }

    setTab() { this._tabs.add(this.column); }

    clearTab([which = 0]) {
        if (which === 3) this._tabs.clear();
        else this._tabs.delete(this.column);
    }

    save() {
        const { row, column, style, _shifted: shifted } = this;
        this._saved = { row, column, style, shifted, charsets: [...this._charsets] };
    }

    restore() {
        const { row = 0, column = 0, style = PLAIN, shifted = 0, charsets = ['B', 'B'] } = this._saved ?? {};
        this._move(row, column);
        this.style = style;
        this._shifted = shifted;
        this._charsets = [...charsets];
    }

    // --- modes and reports

    set(numbers) { if (numbers.includes(4)) this.modes.insert = true; }

    unset(numbers) { if (numbers.includes(4)) this.modes.insert = false; }

    setPrivate(numbers) { numbers.forEach((one) => this._mode(one, true)); }

    unsetPrivate(numbers) { numbers.forEach((one) => this._mode(one, false)); }

    _mode(number, on) {
        const name = { 1: 'applicationKeys', 6: 'origin', 7: 'wrap', 25: 'cursor', 2004: 'bracketedPaste' }[number];
        if (name) this.modes[name] = on;
        if (number === 6) this.to([1, 1]);
        if ([1048, 1049].includes(number) && on) this.save();
        if ([47, 1047, 1049].includes(number)) this._alternate(on);
        if ([1048, 1049].includes(number) && !on) this.restore();
        this.changed = true;
    }

    // Programs that fill the screen have one of their own.
    _alternate(on) {
        if (on === Boolean(this._main)) return;
        if (on) {
            this._main = this.lines;
            this.lines = this._blankRows();
        } else {
            this.lines = this._main;
            this._main = null;
        }
        this._full();
    }

    report([which]) {
        if (which === 5) this._on.reply('\x1b[0n');
        if (which === 6) this._on.reply(`\x1b[${this.row + 1};${this.column + 1}R`);
    }

    window([which]) { if (which === 18) this._on.reply(`\x1b[8;${this.rows};${this.columns}t`); }

    identify([which = 0]) { if (!which) this._on.reply('\x1b[?1;2c'); }
}
