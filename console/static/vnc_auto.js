// Shows the screen of the server that the page's address names: ?path=[PATH]?token=TOKEN
import { recall, remember } from './choices.js';
import { GuestKeyboard } from './keyboard/guest_keyboard.js';
import { LAYOUTS } from './keyboard/layouts.js';
import { PLAIN } from './keyboard/strokes.js';
import RFB from './novnc/core/rfb.js';
import { element, full, pasting } from './page.js';

const CHOICE = 'guest-keyboard';
const show = (text) => { element('status').textContent = `noVNC: ${text}`; };
const lacks = (characters) => show(`the guest's keyboard has no ${characters.join(' ')}`);

const path = new URLSearchParams(location.search).get('path');
// The token works once: it has no place in the history.
history.replaceState(null, '', location.pathname);

function chooseLayout(keyboard, then) {
    const select = element('layout');
    const names = Object.entries(LAYOUTS).map(([id, { name }]) => new Option(name, id));
    names.sort((one, other) => one.text.localeCompare(other.text)).forEach((one) => select.add(one));
    const remembered = recall(CHOICE);
    select.value = remembered in LAYOUTS ? remembered : '';
    keyboard.layout = select.value;
    select.addEventListener('change', () => {
        keyboard.layout = select.value;
        remember(CHOICE, select.value);
        then();
    });
}

if (!path) {
    show('this address has no token; ask for a new console');
} else {
    const url = new URL(path.startsWith('/') ? path : `/${path}`, location.origin);
    url.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
    const rfb = new RFB(element('screen'), url.href, { wsProtocols: ['binary'] });
    const focus = () => rfb.focus();
    const keyboard = new GuestKeyboard(rfb, (character) => lacks([character]));
    rfb.scaleViewport = true;
    rfb.addEventListener('connect', () => {
        show('connected');
        element('tools').hidden = false;
        focus();
    });
    element('ctrl-alt-del').addEventListener('click', () => {
        rfb.sendCtrlAltDel();
        focus();
    });
    full(() => show('this page may not fill the screen'), focus);
    chooseLayout(keyboard, focus);
    const opens = () => { element('paste-layout').textContent = LAYOUTS[keyboard.layout || PLAIN].name; };
    pasting(opens, focus, async (text) => {
        const missing = await keyboard.type(text);
        if (missing.length) lacks(missing);
    });
    rfb.addEventListener('desktopname', (event) => { document.title = event.detail.name; });
    rfb.addEventListener('disconnect', (event) => {
        element('tools').hidden = true;
        show(event.detail.clean
            ? 'disconnected'
            : 'the console could not be opened, or it broke; ask for a new one');
    });
}
