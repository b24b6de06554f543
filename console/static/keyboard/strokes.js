// Which keys make a character on a guest's keyboard.
import { CODES, LAYOUTS } from './layouts.js';

export const PLAIN = 'us';

// What a dead key and a space make.
const SPACING = { '`': '\u0300', '´': '\u0301', '^': '\u0302', '~': '\u0303', '¨': '\u0308', '¸': '\u0327' };
const CODES_OF_BLANKS = { '\n': 'Enter', '\t': 'Tab', ' ': 'Space' };

function key(layout, character) {
    if (character in CODES_OF_BLANKS) return { code: CODES_OF_BLANKS[character], character, shift: false, altgr: false };
    const level = LAYOUTS[layout].levels.findIndex((one) => one.includes(character));
    if (level < 0) return null;
    const code = CODES[LAYOUTS[layout].levels[level].indexOf(character)];
    return { code, character, shift: level % 2 === 1, altgr: level > 1 };
}

// Returns the keys to press one after the other; null: this keyboard has no such character.
export function strokesOf(layout, character) {
    const direct = key(layout, character);
    if (direct) return [direct];
    const [base, mark] = character in SPACING ? [' ', SPACING[character]] : character.normalize('NFD');
    const strokes = mark ? [key(layout, mark), key(layout, base)] : [];
    return strokes.length && strokes.every(Boolean) ? strokes : null;
}
