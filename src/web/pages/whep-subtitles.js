import { applySettings, OFF, subtitleChoice, wantedSubtitles, wantSubtitles } from './subtitles.js';

/** @import { ShownSubtitles } from './answers.ts' */

/** Seconds for which a text that is over is kept. */
const KEPT_SECONDS = 5;
/** Most cues of a track, and tracks of a stream whose labels the server does not list. */
const MAX_CUES = 200;
const MAX_TRACKS = 50;

/** Without a source browsers do not list a track, or drop its cues. */
const EMPTY = 'data:,WEBVTT';

/**
 * Shows subtitles that come as messages of a data channel (docs/events.md), in text tracks of the video: the browser's own menu has
 * them as well. A text is shown when it comes, as the frame of its time does.
 */
export class WhepSubtitles {
  #video;
  #changed;
  /** By their label. @type {Map<string, { element: HTMLTrackElement, about: ShownSubtitles, cues: readonly VTTCue[] }>} */
  #tracks = new Map();
  #abort = new AbortController();
  /** Index of the track that the page shows. */
  #target = OFF;
  /** Timer that undoes what a browser chooses for a track that is added. @type {number | undefined} */
  #choosing;

  /**
   * @param {HTMLVideoElement} video
   * @param {readonly ShownSubtitles[]} listed labels that the server lists; others are added when they come
   * @param {() => void} changed called when `choice` has other contents
   */
  constructor(video, listed, changed) {
    this.#video = video;
    this.#changed = changed;
    for (const about of listed) this.#add(about);
    this.#show(this.#wanted);
    video.textTracks.addEventListener('change', () => this.#noteChange(), { signal: this.#abort.signal });
  }

  get choice() {
    return subtitleChoice([...this.#tracks.keys()], this.#shown);
  }

  /** @param {number} value of an option of `choice` */
  choose(value) {
    this.#want(value);
    this.#show(value);
    this.#changed();
  }

  /**
   * Shows the text of a message; other messages are left alone.
   * @param {unknown} message
   */
  take(message) {
    const read = readMessage(message);
    if (read === undefined) return;
    const { label, language, duration, settings, data } = read;
    const known = this.#tracks.get(label) ?? this.#addLater({ label, language });
    if (known === undefined) return;
    const now = this.#video.currentTime;
    const cue = new VTTCue(now, now + duration, data);
    applySettings(cue, settings);
    const kept = known.cues.filter(({ endTime }) => endTime >= now - KEPT_SECONDS).slice(1 - MAX_CUES);
    drop(known.cues.filter((old) => !kept.includes(old)));
    known.cues = [...kept, cue];
    this.#fill();
  }

  /** Drops the texts: the video starts again from another time. */
  clear() {
    for (const known of this.#tracks.values()) {
      drop(known.cues);
      known.cues = [];
    }
  }

  close() {
    this.#abort.abort();
    clearTimeout(this.#choosing);
    for (const { element } of this.#tracks.values()) element.remove();
    this.#tracks.clear();
  }

  get #wanted() {
    return wantedSubtitles(
      [...this.#tracks.values()].map(({ about: { label, isDefault } }) => ({ label, isDefault: isDefault === true })),
    );
  }

  /** Index of the track that is shown; those that are shown to all do not count where another one is. */
  get #shown() {
    const all = [...this.#tracks.values()];
    const isShown = (/** @type {typeof all[number]} */ { element }) => element.track.mode === 'showing';
    const plain = all.findIndex((one) => isShown(one) && one.about.forced !== true);
    if (plain >= 0) return plain;
    const wanted = this.#wanted;
    const one = all[wanted];
    return one !== undefined && isShown(one) ? wanted : OFF;
  }

  /** @param {number} index */
  #show(index) {
    this.#target = index;
    [...this.#tracks.values()].forEach(({ element: { track }, about }, at) => {
      const mode = at === index || about.forced === true ? 'showing' : 'disabled';
      if (track.mode !== mode) track.mode = mode;
    });
    this.#fill();
  }

  /** Gives the tracks that are shown their texts: browsers may lose those of others. */
  #fill() {
    for (const { element, cues } of this.#tracks.values())
      if (element.track.mode === 'showing') for (const cue of cues) if (cue.track === null) element.track.addCue(cue);
  }

  /** @param {number} index */
  #want(index) {
    this.#target = index;
    wantSubtitles([...this.#tracks.keys()][index]);
  }

  /** Keeps what the viewer chose in the menu of the browser. */
  #noteChange() {
    this.#fill();
    const shown = this.#shown;
    if (shown === this.#target || this.#choosing !== undefined) return;
    this.#want(shown);
    this.#changed();
  }

  /** @param {ShownSubtitles} about */
  #addLater(about) {
    if (this.#tracks.size >= MAX_TRACKS) return undefined;
    const added = this.#add(about);
    this.#show(this.#wanted);
    this.#changed();
    return added;
  }

  /** @param {ShownSubtitles} about */
  #add(about) {
    const element = document.createElement('track');
    Object.assign(element, { kind: 'subtitles', label: about.label, srclang: about.language ?? '', src: EMPTY });
    this.#video.append(element);
    // Chromium shows each new track, in a task of its own
    clearTimeout(this.#choosing);
    this.#choosing = setTimeout(() => {
      this.#choosing = undefined;
      this.#show(this.#target);
    });
    const added = { element, about, cues: [] };
    this.#tracks.set(about.label, added);
    return added;
  }
}

/** @param {readonly VTTCue[]} cues */
function drop(cues) {
  for (const cue of cues) cue.track?.removeCue(cue);
}

/**
 * Reads a message of subtitles; undefined for others.
 * @param {unknown} message
 */
function readMessage(message) {
  if (typeof message !== 'string') return undefined;
  let content;
  try {
    content = JSON.parse(message);
  } catch {
    return undefined;
  }
  const { type, label, language, duration, settings = '', data } = content ?? {};
  if (type !== 'WebVTT' || typeof label !== 'string' || typeof data !== 'string') return undefined;
  if (!(duration > 0) || typeof settings !== 'string') return undefined;
  return { label, language: typeof language === 'string' ? language : undefined, duration, settings, data };
}
