// Has new output read by screen readers: not each character, and not all of much.
const PAUSE = 400;
const MOST_LINES = 20;

export class Speech {
    constructor(element) {
        this._element = element;
        this._text = '';
        this._timer = 0;
    }

    say(character) {
        this._text = (this._text + character).slice(-8192);
        this._timer ||= setTimeout(() => this._flush(), PAUSE);
    }

    _flush() {
        const lines = this._text.split('\n').filter((one) => one.trim());
        this._text = '';
        this._timer = 0;
        this._element.replaceChildren(...lines.slice(-MOST_LINES).map((one) => {
            const line = document.createElement('p');
            line.textContent = one;
            return line;
        }));
    }
}
