// A terminal on the serial line of the server that the page's address names: #token=TOKEN
import { recall, remember } from './choices.js';
import { element, full, pasting } from './page.js';
import { control, named, pasted, pressed } from './terminal/keys.js';
import { Parser } from './terminal/parser.js';
import { Screen } from './terminal/screen.js';
import { Speech } from './terminal/speech.js';
import { View } from './terminal/view.js';

const CHOICE = 'terminal-size';
const WINDOW = 'window';
const FONT = { least: 9, usual: 15, most: 18 };
// A guest's line holds some thousand characters until they are read: long texts are sent in parts.
const PART = { characters: 256, milliseconds: 30 };

const show = (text) => { element('status').textContent = text; };
const token = new URLSearchParams(location.hash.slice(1)).get('token');
// The token works once: it has no place in the history.
history.replaceState(null, '', location.pathname);

class Terminal {
    constructor(socket) {
        this._socket = socket;
        this._output = element('output');
        this._keys = element('keys');
        this._view = new View(this._output);
        this._speech = new Speech(element('said'));
        this._screen = new Screen(80, 24, {
            reply: (text) => this.send(text),
            scrolledAway: (line) => this._view.scrolledAway(line),
            said: (character) => this._speech.say(character),
        });
        this._parser = new Parser(this._screen);
        this._decoder = new TextDecoder();
        this._isControl = false;
        this._listen();
        this._chooseSize();
    }

    focus() { this._keys.focus({ preventScroll: true }); }

    receive(bytes) {
        this._parser.feed(this._decoder.decode(bytes, { stream: true }));
        this._view.due(this._screen);
    }

    send(text) {
        if (text && this._socket.readyState === WebSocket.OPEN) this._socket.send(new TextEncoder().encode(text));
    }

    async paste(text) {
        const whole = pasted(text, this._screen.modes);
        for (let at = 0; at < whole.length; at += PART.characters) {
            if (at) await new Promise((done) => { setTimeout(done, PART.milliseconds); });
            this.send(whole.slice(at, at + PART.characters));
        }
    }

    // --- the keyboard

    _listen() {
        this._keys.addEventListener('keydown', (event) => {
            const text = pressed(event, this._screen.modes);
            if (text === null) return;
            event.preventDefault();
            this._typed(text);
        });
        this._keys.addEventListener('input', (event) => { if (!event.isComposing) this._take(); });
        this._keys.addEventListener('compositionend', () => this._take());
        this._keys.addEventListener('paste', (event) => {
            event.preventDefault();
            this.paste(event.clipboardData.getData('text/plain'));
        });
        // What is selected can be copied; a click without a selection is one into the terminal.
        this._output.addEventListener('mouseup', () => { if (getSelection().isCollapsed) this.focus(); });
        this._output.addEventListener('keydown', (event) => {
            const isText = event.key.length === 1 && !event.ctrlKey && !event.metaKey;
            if (event.target === this._output && (isText || event.key === 'Enter')) this.focus();
        });
        document.querySelectorAll('[data-key]').forEach((one) => one.addEventListener('click', () => {
            this._typed(named(one.dataset.key, this._screen.modes));
            this.focus();
        }));
        element('ctrl').addEventListener('click', () => {
            this._control(!this._isControl);
            this.focus();
        });
    }

    _control(on) {
        this._isControl = on;
        element('ctrl').setAttribute('aria-pressed', String(on));
    }

    _take() {
        const { value } = this._keys;
        this._keys.value = '';
        this._typed(this._isControl ? control(value.slice(0, 1)) ?? value : value);
    }

    _typed(text) {
        this._control(false);
        this._output.scrollTop = this._output.scrollHeight;
        this.send(text);
    }

    // --- the size

    _chooseSize() {
        const select = element('size');
        const offered = [...select.options].map((one) => one.value);
        if (offered.includes(recall(CHOICE))) select.value = recall(CHOICE);
        select.addEventListener('change', () => {
            remember(CHOICE, select.value);
            this.fit();
            show(`in the guest: stty columns ${this._screen.columns} rows ${this._screen.rows}`);
            this.focus();
        });
        window.addEventListener('resize', () => this.fit());
    }

    // Makes the screen as large as was chosen, and a chosen number of characters fill the window.
    fit() {
        const chosen = element('size').value;
        const room = { width: this._output.clientWidth - 16, height: this._output.clientHeight - 4 };
        const character = this._character();
        if (chosen === WINDOW) {
            const columns = Math.floor(room.width / (character.width * FONT.usual));
            const rows = Math.floor(room.height / (character.height * FONT.usual));
            this._resize(Math.max(columns, 20), Math.max(rows, 5), FONT.usual);
        } else {
            const [columns, rows] = chosen.split(' × ').map(Number);
            const size = Math.min(room.width / (columns * character.width), room.height / (rows * character.height));
            this._resize(columns, rows, Math.max(FONT.least, Math.min(FONT.most, Math.floor(size * 4) / 4)));
        }
    }

    // Returns how large a character is, for one pixel of its font.
    _character() {
        const probe = document.createElement('span');
        probe.textContent = 'm'.repeat(100);
        probe.style.fontSize = '100px';
        probe.style.position = 'absolute';
        this._output.append(probe);
        const width = probe.getBoundingClientRect().width / 10000;
        probe.remove();
        return { width, height: 1.25 };
    }

    _resize(columns, rows, font) {
        this._output.style.fontSize = `${font}px`;
        if (columns !== this._screen.columns || rows !== this._screen.rows) this._screen.resize(columns, rows);
        this._screen.changed = true;
        this._view.due(this._screen);
    }
}

function open() {
    const url = new URL(`./?token=${encodeURIComponent(token)}`, location.href);
    url.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
    const socket = new WebSocket(url, ['binary']);
    socket.binaryType = 'arraybuffer';
    const terminal = new Terminal(socket);
    const focus = () => terminal.focus();
    let wasOpen = false;
    socket.addEventListener('open', () => {
        wasOpen = true;
        show('connected; a line that shows nothing may wait for Enter');
        element('tools').hidden = false;
        terminal.fit();
        focus();
    });
    socket.addEventListener('message', (event) => terminal.receive(event.data));
    socket.addEventListener('close', (event) => {
        element('tools').hidden = true;
        element('keys').disabled = true;
        show(event.reason || (wasOpen ? 'disconnected; ask for a new console' : 'the console could not be opened; ask for a new one'));
    });
    full(() => show('this page may not fill the screen'), focus);
    pasting(() => {}, focus, (text) => terminal.paste(text));
}

if (token) open();
else show('this address has no token; ask for a new console');
