// Types text into a guest: the keys of a US keyboard, with Shift where its characters need it.
import keysyms from './novnc/core/input/keysymdef.js';

const SHIFT = 0xffe1;
const RETURN = 0xff0d;
const TAB = 0xff09;
const SHIFTED = /[A-Z~!@#$%^&*()_+{}|:"<>?]/;
// So many milliseconds for each character: a guest that boots reads its keys slowly.
const PAUSE = 15;

const pause = () => new Promise((done) => { setTimeout(done, PAUSE); });

export function keysymOf(character) {
    if (character === '\n') return RETURN;
    if (character === '\t') return TAB;
    return keysyms.lookup(character.codePointAt(0));
}

export async function type(rfb, text) {
    for (const character of text.replace(/\r\n?/g, '\n')) {
        const keysym = keysymOf(character);
        const shifted = SHIFTED.test(character);
        if (shifted) rfb.sendKey(SHIFT, 'ShiftLeft', true);
        rfb.sendKey(keysym, null);
        if (shifted) rfb.sendKey(SHIFT, 'ShiftLeft', false);
        await pause();
    }
}
