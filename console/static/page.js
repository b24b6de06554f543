// What both pages have: a state, full screen, text to paste.
export const element = (id) => document.getElementById(id);

export function full(failed, then) {
    const button = element('full');
    button.hidden = !document.fullscreenEnabled;
    button.addEventListener('click', async () => {
        try {
            if (document.fullscreenElement) await document.exitFullscreen();
            else await document.documentElement.requestFullscreen();
        } catch {
            failed();
        }
        then();
    });
}

// Asks for a text, and calls `type` with it.
export function pasting(opens, then, type) {
    const dialog = element('pasting');
    element('paste').addEventListener('click', () => {
        opens();
        dialog.showModal();
    });
    dialog.addEventListener('close', async () => {
        const text = element('text').value;
        element('text').value = '';
        then();
        if (dialog.returnValue === 'type') await type(text);
        dialog.returnValue = '';
    });
}
