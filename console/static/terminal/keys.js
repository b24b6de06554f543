// What a terminal sends for keys, as xterm does.
const NAMED = {
    Enter: '\r', Backspace: '\x7f', Tab: '\t', Escape: '\x1b',
    F1: '\x1bOP', F2: '\x1bOQ', F3: '\x1bOR', F4: '\x1bOS',
};
const CURSOR = { ArrowUp: 'A', ArrowDown: 'B', ArrowRight: 'C', ArrowLeft: 'D', End: 'F', Home: 'H' };
const NUMBERED = {
    Insert: 2, Delete: 3, PageUp: 5, PageDown: 6, F5: 15, F6: 17, F7: 18, F8: 19, F9: 20, F10: 21, F11: 23, F12: 24,
};

// Returns what a key with Ctrl sends; null: nothing.
export function control(character) {
    if (character === '?') return '\x7f';
    const code = character === ' ' ? 64 : character.toUpperCase().charCodeAt(0);
    return character.length === 1 && code >= 64 && code <= 95 ? String.fromCharCode(code - 64) : null;
}

export function named(key, modes, { shiftKey = false, altKey = false, ctrlKey = false } = {}) {
    const modifiers = 1 + Number(shiftKey) + 2 * Number(altKey) + 4 * Number(ctrlKey);
    if (key in CURSOR) {
        if (modifiers > 1) return `\x1b[1;${modifiers}${CURSOR[key]}`;
        return `\x1b${modes.applicationKeys ? 'O' : '['}${CURSOR[key]}`;
    }
    if (key in NUMBERED) return `\x1b[${NUMBERED[key]}${modifiers > 1 ? `;${modifiers}` : ''}~`;
    if (!(key in NAMED)) return null;
    return altKey ? `\x1b${NAMED[key]}` : NAMED[key];
}

// Returns what a pressed key sends; null: it is text, or the browser's.
export function pressed(event, modes) {
    const { key, ctrlKey, altKey, shiftKey, metaKey } = event;
    // Shift-Tab leaves the terminal, Ctrl-V pastes, Ctrl-Shift-C copies.
    const isOurs = metaKey || (key === 'Tab' && shiftKey) || (ctrlKey && (shiftKey || key === 'v') && key.length === 1);
    if (event.isComposing || isOurs) return null;
    if (key.length > 1) return named(key, modes, event);
    if (event.getModifierState('AltGraph')) return null;
    if (ctrlKey && !altKey) return control(key);
    return altKey && !ctrlKey && key >= ' ' && key <= '~' ? `\x1b${key}` : null;
}

// Returns a text as it is pasted: without control characters, lines ended by Enter.
export function pasted(text, modes) {
    const plain = text.replace(/\r\n?|\n/g, '\r').replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g, '');
    return modes.bracketedPaste ? `\x1b[200~${plain}\x1b[201~` : plain;
}
