// Reads what a terminal is sent, as VT100 and xterm do, and calls what it means on a screen.
const CONTROLS = {
    '\b': 'backspace', '\t': 'tab', '\n': 'lineFeed', '\v': 'lineFeed', '\f': 'lineFeed', '\r': 'carriageReturn',
    '\x0e': 'shiftOut', '\x0f': 'shiftIn',
};
const ESCAPES = {
    7: 'save', 8: 'restore', D: 'index', E: 'nextLine', H: 'setTab', M: 'reverseIndex', c: 'reset', Z: 'identify',
};
const SEQUENCES = {
    '@': 'insertCharacters', A: 'up', B: 'down', C: 'right', D: 'left', E: 'downToStart', F: 'upToStart', G: 'toColumn',
    H: 'to', I: 'tab', J: 'eraseDisplay', K: 'eraseLine', L: 'insertLines', M: 'deleteLines', P: 'deleteCharacters',
    S: 'scrollUp', T: 'scrollDown', X: 'eraseCharacters', Z: 'tabBack', '`': 'toColumn', a: 'right', b: 'repeat',
    c: 'identify', d: 'toRow', e: 'down', f: 'to', g: 'clearTab', h: 'set', l: 'unset', m: 'attributes', n: 'report',
    r: 'margins', s: 'save', t: 'window', u: 'restore', '?h': 'setPrivate', '?l': 'unsetPrivate', '!p': 'softReset',
};
const CONTROL = /[\x00-\x1f\x7f]/;
// A sequence that is longer is none.
const LONGEST = 256;

export class Parser {
    constructor(screen) {
        this._screen = screen;
        this._state = this._ground;
        this._sequence = '';
    }

    feed(text) {
        for (const character of text) this._state(character);
    }

    _ground(character) {
        if (character === '\x1b') this._begin(this._escape);
        else if (!CONTROL.test(character)) this._screen.print(character);
        else this._control(character);
    }

    _control(character) {
        const name = CONTROLS[character];
        if (name) this._screen[name]();
    }

    _begin(state) {
        this._sequence = '';
        this._state = state;
    }

    _escape(character) {
        if (character === '[') return this._begin(this._csi);
        if (character === ']') return this._begin(this._string);
        if ('P^_X'.includes(character)) return this._begin(this._string);
        if ('()'.includes(character)) return this._begin(character === '(' ? this._charset0 : this._charset1);
        if (' #%*+-./'.includes(character)) return this._begin(this._skip);
        this._state = this._ground;
        const name = ESCAPES[character];
        if (name) this._screen[name]([]);
        else if (character === '\x1b') this._begin(this._escape);
        return undefined;
    }

    _skip() { this._state = this._ground; }

    _charset0(character) { this._charset(0, character); }

    _charset1(character) { this._charset(1, character); }

    _charset(number, character) {
        this._state = this._ground;
        this._screen.charset(number, character);
    }

    // Titles and the like: nothing of them is shown.
    _string(character) {
        if (character === '\x07' || character === '\x9c') this._state = this._ground;
        else if (character === '\x1b') this._state = this._stringEnd;
    }

    _stringEnd(character) {
        if (character === '\\') this._state = this._ground;
        else {
            this._begin(this._escape);
            this._state(character);
        }
    }

    _csi(character) {
        if (character === '\x1b') this._begin(this._escape);
        else if (character === '\x18' || character === '\x1a') this._state = this._ground;
        else if (CONTROL.test(character)) this._control(character);
        else if (character >= '@' && character <= '~') this._run(character);
        else if (this._sequence.length < LONGEST) this._sequence += character;
    }

    _run(final) {
        this._state = this._ground;
        const found = /^([<=>?]?)([\d;:]*)([ -/]*)$/.exec(this._sequence);
        if (!found || this._sequence.length >= LONGEST) return;
        const name = SEQUENCES[found[1] + found[3] + final];
        if (!name) return;
        const numbers = found[2].split(/[;:]/).map((one) => Math.min(Number(one), 9999));
        this._screen[name](found[2] ? numbers : []);
    }
}
