import { hedged } from './hedged.js';

/** The server's clock minus this browser's in ms, from the answer that came quickest: it is wrong by half its time. */
const clock = { offset: 0, took: Infinity };
/** What was measured loses worth with every answer, so that clocks that drift are followed. */
const CLOCK_AGING = 1.1;
/** The root of the server, which a proxy may have below a path of its own: this file lies at `-/assets/<build>/` below it. */
export const root = new URL('../../../', import.meta.url);
/** A server that has not answered by then is gone. With the time between two questions viewers hear of it within 5 s. */
const ANSWER_MS = 2500;
/** From each question to the next one, while there is no answer. */
const PAUSES_MS = [500, 1000];

/** Milliseconds since the epoch by the server's clock. */
export const serverNow = () => Date.now() + clock.offset;

function noteClock(now, sent, received) {
  clock.took *= CLOCK_AGING;
  const took = received - sent;
  if (took <= clock.took) Object.assign(clock, { took, offset: now - (sent + received) / 2 });
}

/** Makes an element. Strings become text, never markup. */
export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/**
 * Fetches what is the same from every server.
 * @throws TypeError when none can be reached, TimeoutError when none answers
 */
export function ask(url, options = {}) {
  const late = AbortSignal.timeout(ANSWER_MS);
  const asked = [];
  const askOne = async () => {
    const own = new AbortController();
    asked.push(own);
    const signal = AbortSignal.any([own.signal, late]);
    const response = await fetch(url, { cache: 'no-store', signal, ...options });
    for (const other of asked) if (other !== own) other.abort();
    return response;
  };
  return hedged(askOne, PAUSES_MS);
}

/**
 * What is live. `query` may name one app and stream.
 * @throws what `ask` does, Error when the server does not answer as expected
 */
export async function fetchStreams(query = {}) {
  const sent = Date.now();
  const response = await ask(new URL(`-/streams.json?${new URLSearchParams(query)}`, root));
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  const received = Date.now();
  const list = await response.json();
  noteClock(list.now, sent, received);
  return list;
}

/** `playerPath('app', 'a b')` is `/app/a%20b`, where the server is at the root of its host. */
export const playerPath = (app, stream) => `${root.pathname}${encodeURIComponent(app)}/${encodeURIComponent(stream)}`;

/** The elements of this page's own path below the root. */
export const ownPath = () => location.pathname.slice(root.pathname.length).split('/').map(decodeURIComponent);

/** "8 s", "3 min", "2 h 5 min", "4 d 1 h". */
export function age(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** Addresses with their names, each with a button that copies it. @param rows `[name, url]` */
export function showAddresses(place, rows) {
  replaceIfChanged(place, rows, () =>
    rows.flatMap(([name, url]) => [element('dt', {}, name), element('dd', {}, copied(url))]),
  );
}

/** "1280×720 · 30 fps · H264 · AAC" of a stream of the list. */
export function media({ video, audio }) {
  const parts = [];
  if (video?.width > 0) parts.push(`${video.width}×${video.height}`);
  if (video?.framerate > 0) parts.push(`${Math.round(video.framerate * 100) / 100} fps`);
  if (video) parts.push(video.codec);
  if (audio) parts.push(audio.codecs.map((codec) => (codec === 'OPUS' ? 'Opus' : codec)).join(', '));
  return parts.join(' · ');
}

/** "800 kbit/s", "2.50 Mbit/s". */
export const bits = (rate) => (rate < 1e6 ? `${Math.round(rate / 1000)} kbit/s` : `${(rate / 1e6).toFixed(2)} Mbit/s`);

export const watching = (viewers) => `${viewers} watching`;

/**
 * Copies a text, also on pages that browsers do not give the clipboard because they came without TLS.
 * @throws Error
 */
export async function copyText(text) {
  if (navigator.clipboard !== undefined) return await navigator.clipboard.writeText(text);
  const field = element('textarea', { value: text, className: 'unseen', readOnly: true });
  // an open dialog lets nothing outside of it be selected
  (document.querySelector('dialog[open]') ?? document.body).append(field);
  field.select();
  const copied = document.execCommand('copy');
  field.remove();
  if (!copied) throw new Error('This browser does not let the page copy: select the text instead');
}

/** An address, which may be broken after its marks, with a button that copies it. */
export function copied(text) {
  const parts = text.split(/(?<=[/?&])(?!\/)/).flatMap((part, at) => (at > 0 ? [element('wbr'), part] : [part]));
  return element('span', { className: 'copied' }, element('code', {}, ...parts), new CopyButton(() => text).element);
}

const DONE_MS = 2000;

/** A button that copies what a function tells, and says so for a moment. */
export class CopyButton {
  element;
  #reset;

  constructor(textOf, title = 'Copy') {
    this.element = element('button', { type: 'button', className: 'plain', textContent: title });
    this.element.addEventListener('click', async () => {
      const said = await copyText(textOf()).then(
        () => 'Copied',
        (error) => error.message,
      );
      this.element.textContent = said;
      clearTimeout(this.#reset);
      this.#reset = setTimeout(() => (this.element.textContent = title), DONE_MS);
    });
  }
}

/** The same element if it is there with the same content, so that what is focused or selected in it stays so. */
export function replaceIfChanged(place, content, make) {
  const text = JSON.stringify(content);
  if (place.dataset.shown === text) return;
  place.dataset.shown = text;
  place.replaceChildren(...make(content));
}
