// A guest's keyboard: presses the keys of its layout for what is typed here, or pasted.
import keysyms from '../novnc/core/input/keysymdef.js';
import { LAYOUTS } from './layouts.js';
import { PLAIN, strokesOf } from './strokes.js';

const SHIFT = { keysym: 0xffe1, code: 'ShiftLeft' };
const ALTGR = { keysym: 0xfe03, code: 'AltRight' };
const CAPS_LOCK = 0xffe5;
const NAMED = {
    '\n': 0xff0d, '\t': 0xff09,
    // dead keys
    '\u0300': 0xfe50, '\u0301': 0xfe51, '\u0302': 0xfe52, '\u0303': 0xfe53, '\u0304': 0xfe54, '\u0306': 0xfe55,
    '\u0307': 0xfe56, '\u0308': 0xfe57, '\u030a': 0xfe58, '\u030b': 0xfe59, '\u030c': 0xfe5a, '\u0327': 0xfe5b,
    '\u0328': 0xfe5c,
};
// With one of these a key is a shortcut, not text: Ctrl, Alt, Meta, Super.
const OF_SHORTCUTS = new Set([0xffe3, 0xffe4, 0xffe7, 0xffe8, 0xffe9, 0xffea, 0xffeb, 0xffec]);
const SHIFTS = new Set([0xffe1, 0xffe2]);
// So many milliseconds for each character: a guest that boots reads its keys slowly.
const PAUSE = 15;

const pause = () => new Promise((done) => { setTimeout(done, PAUSE); });

const keysymOf = (character) => NAMED[character] ?? keysyms.lookup(character.codePointAt(0));

export class GuestKeyboard {
    // `refused` is called with a character that the layout doesn't have.
    constructor(rfb, refused) {
        this.layout = '';
        this._refused = refused;
        this._held = new Map();
        this._send = rfb.sendKey.bind(rfb);
        // noVNC sends by it what is pressed here.
        rfb.sendKey = (keysym, code, down) => {
            if (down !== undefined) return this._pressed(keysym, code, down);
            this._pressed(keysym, code, true);
            return this._pressed(keysym, code, false);
        };
    }

    // Presses the keys of a text; returns the characters that the layout doesn't have.
    async type(text) {
        const missing = new Set();
        for (const character of text.replace(/\r\n?/g, '\n').normalize('NFC')) {
            const strokes = strokesOf(this.layout || PLAIN, character);
            if (!strokes) missing.add(character);
            for (const one of strokes ?? []) {
                this._stroke(one);
                await pause();
            }
        }
        return [...missing];
    }

    _pressed(keysym, code, down) {
        if (!this.layout) return this._send(keysym, code, down);
        // Whether a letter is large is known here; the guest's lock would turn it round.
        if (keysym === CAPS_LOCK) return undefined;
        const character = this._character(keysym);
        if (!character) {
            this._hold(keysym, code, down);
            return this._send(keysym, code, down);
        }
        if (!down) return undefined;
        const strokes = strokesOf(this.layout, character);
        if (!strokes) return this._refused(character);
        strokes.forEach((one) => this._stroke(one));
        return undefined;
    }

    _hold(keysym, code, down) {
        if (down) this._held.set(code, keysym);
        else this._held.delete(code);
    }

    // Returns the character that a key makes here, if it makes one.
    _character(keysym) {
        if ((keysym >= 0x20 && keysym <= 0x7e) || (keysym >= 0xa0 && keysym <= 0xff)) return String.fromCharCode(keysym);
        if (keysym > 0x01000000) return String.fromCodePoint(keysym - 0x01000000);
        const all = LAYOUTS[this.layout].levels.join('');
        return [...all].find((one) => one !== ' ' && keysyms.lookup(one.codePointAt(0)) === keysym);
    }

    _stroke(stroke) {
        const held = [...this._held];
        const shortcut = held.some(([, keysym]) => OF_SHORTCUTS.has(keysym));
        const wrong = shortcut ? [] : held.filter(([, keysym]) => SHIFTS.has(keysym) || keysym === ALTGR.keysym);
        const wanted = shortcut ? [] : [...(stroke.shift ? [SHIFT] : []), ...(stroke.altgr ? [ALTGR] : [])];
        // QEMU takes the code; by the character where it was given a layout itself.
        const keysym = keysymOf(stroke.character);
        wrong.forEach(([code, one]) => this._send(one, code, false));
        wanted.forEach((one) => this._send(one.keysym, one.code, true));
        this._send(keysym, stroke.code, true);
        this._send(keysym, stroke.code, false);
        wanted.reverse().forEach((one) => this._send(one.keysym, one.code, false));
        wrong.forEach(([code, one]) => this._send(one, code, true));
    }
}
