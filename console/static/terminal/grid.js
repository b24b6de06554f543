// The rows of a terminal's cells, with a cursor in one: moved, erased, scrolled.
import { PLAIN } from './styles.js';

export { PLAIN };

const BLANK = Object.freeze({ text: ' ', style: PLAIN });

export const clamp = (value, least, most) => Math.max(least, Math.min(most, value));

// Returns what a row says.
export function textOf(line) {
    return line.map((cell) => cell.text).join('').trimEnd();
}

export class Grid {
    resize(columns, rows) {
        const wide = (line) => [...line, ...this._blanks(columns)].slice(0, columns);
        this.lines = this.lines.map(wide);
        while (this.lines.length > rows) {
            const isFree = this.row < this.lines.length - 1 && textOf(this.lines.at(-1)) === '';
            if (isFree) this.lines.pop();
            else this._dropFirst();
        }
        const higher = (lines) => [...lines, ...Array.from({ length: rows }, () => this._blanks(columns))].slice(0, rows);
        this.lines = higher(this.lines);
        if (this._main) this._main = higher(this._main.map(wide));
        this.columns = columns;
        this.rows = rows;
        this._full();
        this._move(this.row, this.column);
    }

    _dropFirst() {
        this._keep(this.lines.shift());
        this.row = Math.max(0, this.row - 1);
    }

    _keep(line) { if (!this._main) this._on.scrolledAway(line); }

    // --- rows

    _blanks(count) {
        const cell = this.style.bg ? { text: ' ', style: { ...PLAIN, bg: this.style.bg } } : BLANK;
        return Array(count).fill(cell);
    }

    _blankRows() { return Array.from({ length: this.rows }, () => this._blanks(this.columns)); }

    _full() {
        this._top = 0;
        this._bottom = this.rows - 1;
    }

    margins([top = 1, bottom = this.rows]) {
        const [first, last] = [Math.max(top, 1) - 1, Math.min(bottom || this.rows, this.rows) - 1];
        if (first >= last) return;
        this._top = first;
        this._bottom = last;
        this.to([1, 1]);
    }

    // Moves the rows between two others: up if `count` is more than 0.
    _scroll(top, bottom, count) {
        for (let left = Math.min(Math.abs(count), bottom - top + 1); left > 0; left -= 1) {
            const [gone] = this.lines.splice(count > 0 ? top : bottom, 1);
            if (count > 0 && top === 0) this._keep(gone);
            this.lines.splice(count > 0 ? bottom : top, 0, this._blanks(this.columns));
        }
        this.changed = true;
    }

    scrollUp([count = 1]) { this._scroll(this._top, this._bottom, count || 1); }

    scrollDown([count = 1]) { this._scroll(this._top, this._bottom, -(count || 1)); }

    index() {
        if (this.row === this._bottom) this._scroll(this._top, this._bottom, 1);
        else this._move(this.row + 1, this.column);
        this._pending = false;
    }

    reverseIndex() {
        if (this.row === this._top) this._scroll(this._top, this._bottom, -1);
        else this._move(this.row - 1, this.column);
    }

    lineFeed() {
        this.index();
        if (!this._main) this._on.said('\n');
    }

    nextLine() {
        this.index();
        this.carriageReturn();
    }

    _isInside() { return this.row >= this._top && this.row <= this._bottom; }

    insertLines([count = 1]) { if (this._isInside()) this._scrollLines(-(count || 1)); }

    deleteLines([count = 1]) { if (this._isInside()) this._scrollLines(count || 1); }

    _scrollLines(count) {
        for (let left = Math.min(Math.abs(count), this._bottom - this.row + 1); left > 0; left -= 1) {
            this.lines.splice(count > 0 ? this.row : this._bottom, 1);
            this.lines.splice(count > 0 ? this._bottom : this.row, 0, this._blanks(this.columns));
        }
        this.carriageReturn();
    }

    // --- erasing

    _erase(row, from, to) {
        const line = this.lines[row];
        line.splice(from, to - from, ...this._blanks(to - from));
        this._pending = false;
        this.changed = true;
    }

    eraseLine([which = 0]) {
        this._erase(this.row, which === 0 ? this.column : 0, which === 1 ? this.column + 1 : this.columns);
    }

    eraseDisplay([which = 0]) {
        if (which === 2 || which === 3) {
            this.lines.forEach((_, row) => this._erase(row, 0, this.columns));
            return;
        }
        this.eraseLine([which]);
        this.lines.forEach((_, row) => {
            if (which === 0 ? row > this.row : row < this.row) this._erase(row, 0, this.columns);
        });
    }

    eraseCharacters([count = 1]) { this._erase(this.row, this.column, Math.min(this.column + (count || 1), this.columns)); }

    deleteCharacters([count = 1]) {
        const line = this.lines[this.row];
        const gone = line.splice(this.column, count || 1);
        line.push(...this._blanks(gone.length));
        this.changed = true;
    }

    insertCharacters([count = 1]) {
        const line = this.lines[this.row];
        line.splice(this.column, 0, ...this._blanks(Math.min(count || 1, this.columns)));
        line.length = this.columns;
        this.changed = true;
    }
}
