import { age, bits, element, serverNow } from './common.js';
import { Poster } from './poster.js';
import { Timeline } from './timeline.js';

/** @import { Rewinder } from './rewinder.js' */
/** @import { Failure } from './whep-session.js' */

/**
 * Statistics of a player, undefined while unknown.
 * @typedef {object} Stats
 * @property {number} [at] when the frames were counted, in milliseconds of a clock of the player
 * @property {number} [latency] seconds
 * @property {string} latencyMeaning
 * @property {number} [bitrate] bit/s
 * @property {number} [frames]
 * @property {number} [dropped]
 */
/**
 * A choice of the viewer.
 * @typedef {{ name: string, options: readonly { value: number, label: string }[], chosen: number }} Choice
 */
/**
 * @typedef {object} Player
 * @property {(url: string, attempt: number) => Promise<void>} start
 * @property {(serverNow: number) => Promise<Stats>} stats
 * @property {() => void} catchUp goes on at the live edge
 * @property {() => void} close
 * @property {Rewinder} [rewinder] of a stream that can be rewound
 * @property {readonly Choice[]} [choices]
 * @property {(name: string, value: number) => void} [choose]
 */
/** @typedef {{ failed: (failure: Failure) => void, interrupted: () => void, changed: () => void }} PlayerEvents */
/**
 * A state that is shown instead of the video; `busy`: it will pass by itself.
 * @typedef {readonly [title: string, text: string, busy: boolean]} State
 */
/** @typedef {{ hasAudio: boolean, isAudio?: boolean, note?: string }} Notes about a stream: `isAudio`: there is no video */

const STALL_MS = 8000;
/** Unmuting so soon after a press in the video is the viewer's doing; so soon after a change of the rate it is the browser's. */
const SOON_MS = 1000;
/** Starts that may fail before the reason is shown: a stream that has just begun is incomplete. */
const QUIET_ATTEMPTS = 3;
const RETRY_MS = [500, 500, 500, 1000, 2000, 4000];
/**
 * Randomizes a pause: viewers that lose their server together do not come back together.
 * @param {number} milliseconds
 */
const spread = (milliseconds) => milliseconds * (0.2 + 0.8 * Math.random());

/**
 * Shown while the publisher is away.
 * @type {State}
 */
export const AWAY = ['Reconnecting', 'The publisher is away and may return.', true];
/**
 * Shown while no server answers.
 * @type {State}
 */
export const UNREACHABLE = ['The server cannot be reached', 'Trying again', true];

/** A video with its state on top and its figures below. Plays again by itself after a fault. */
export class Panel {
  element;
  #video = element('video', { muted: true, autoplay: true, playsInline: true, controls: true });
  #cover;
  /** Shown for a stream without video. */
  #art;
  #unmute = element('button', { className: 'sound', type: 'button', textContent: 'Unmute', hidden: true });
  #figures = {
    Latency: element('dd'),
    Resolution: element('dd'),
    'Frame rate': element('dd'),
    Bitrate: element('dd'),
    Dropped: element('dd'),
  };
  #timeline = new Timeline(this.#video);
  #choices = element('div', { className: 'choices', hidden: true });
  /** Menus by the name of their choice. @type {Map<string, { element: HTMLElement, select: HTMLSelectElement }>} */
  #menus = new Map();
  #note = element('p', { className: 'note', hidden: true });
  #makePlayer;
  #troubled;
  #begun;
  /** @type {Player | undefined} */
  #player;
  /** @type {{ url: string, hasAudio: boolean } | undefined} */
  #target;
  #attempts = 0;
  /** @type {number | undefined} */
  #retry;
  #shown = false;
  /** @type {State | undefined} */
  #excuse;
  /**
   * Reason of the last failure.
   * @type {string | undefined}
   */
  #reason;
  #startedAt = 0;
  #progressAt = 0;
  #position = 0;
  #still = true;
  #firstFrameMs;
  /** @type {{ count: number, at: number } | undefined} */
  #frames;
  /** The playback rate that the video reported last, and when. */
  #rate = { value: 1, at: -Infinity };
  #pressedAt = -Infinity;

  /**
   * @param {string} title
   * @param {{ mark: string, name: string }} looks URL of the image shown while nothing plays, and the name of the stream
   * @param {(video: HTMLVideoElement, events: PlayerEvents) => Player} makePlayer
   * @param {object} events
   * @param {(panel: Panel) => void} events.unmuted called when the audio of this panel is turned on
   * @param {() => void} events.begun called when a frame is shown
   * @param {() => void} events.troubled called when the video stopped: the stream may have ended
   * @param {number} events.firstFrameMs after so long without a frame the player is started again
   */
  constructor(title, { mark, name }, makePlayer, { unmuted, begun, troubled, firstFrameMs }) {
    this.#makePlayer = makePlayer;
    this.#firstFrameMs = firstFrameMs;
    this.#begun = begun;
    this.#troubled = troubled;
    const cover = {
      image: element('img', { src: mark, alt: '', className: 'pulse' }),
      title: element('strong'),
      text: element('span'),
      button: element('button', { type: 'button', textContent: 'Play', hidden: true }),
    };
    this.#cover = { ...cover, element: element('div', { className: 'cover' }, ...Object.values(cover)) };
    this.#cover.element.role = 'status';
    const figures = element('dl', { className: 'figures' });
    for (const [name, figure] of Object.entries(this.#figures))
      figures.append(element('div', {}, element('dt', { textContent: name }), figure));
    this.#art = new Poster(name);
    this.#art.draw(true);
    this.#art.element.append(
      element('span', { className: 'badge' }, 'Audio only'),
      element('strong', {}, name.slice(name.indexOf('/') + 1)),
    );
    this.#art.element.hidden = true;
    const screen = element(
      'div',
      { className: 'screen' },
      this.#video,
      this.#art.element,
      this.#unmute,
      this.#cover.element,
    );
    this.element = element(
      'section',
      { className: 'panel' },
      element('h2', {}, title),
      screen,
      this.#timeline.element,
      this.#choices,
      figures,
      this.#note,
    );
    this.#video.ariaLabel = title;
    this.#listen(unmuted);
    this.#clearFigures();
  }

  /**
   * Plays until `stop`.
   * @param {string} url
   * @param {Notes} notes
   */
  play(url, { hasAudio, isAudio = false, note = '' }) {
    this.stop('Starting', '', true);
    this.#art.element.hidden = !isAudio;
    this.#target = { url, hasAudio };
    this.#note.textContent = note;
    this.#note.hidden = note === '';
    this.#attempts = 0;
    this.#reason = undefined;
    this.#shown = false;
    this.#start();
  }

  /**
   * Stops, and shows a state instead of the video.
   * @param {State} state
   */
  stop(...state) {
    this.#cancelRetry();
    this.#target = undefined;
    this.#player?.close();
    this.#use(undefined);
    this.#show(...state);
    this.#clearFigures();
    this.#note.hidden = true;
    this.#showChoices();
  }

  /** State to show while nothing plays, where the page knows the reason better than the player. @param {State | undefined} excuse */
  set excuse(excuse) {
    const before = this.#excuse;
    this.#excuse = excuse;
    if (excuse === before || this.#target === undefined) return;
    if (!this.#cover.element.hidden && this.#cover.button.hidden) this.#showWaiting();
    if (excuse === undefined && this.#retry !== undefined) this.#startSoon(0);
  }

  /** Whether a video is shown that moves, or that the viewer has paused. */
  get playing() {
    return this.#player !== undefined && this.#cover.element.hidden && !this.#still;
  }

  mute() {
    this.#video.muted = true;
  }

  /** Refreshes the figures and detects a stalled video. Call it once a second. */
  tick() {
    if (this.#player === undefined) return;
    const now = performance.now();
    const playing = this.#cover.element.hidden;
    this.#timeline.update();
    this.#still = this.#video.currentTime === this.#position && !(this.#video.paused && playing);
    if (!this.#still) {
      this.#position = this.#video.currentTime;
      this.#progressAt = now;
    }
    if (playing) {
      void this.#refresh(this.#player);
      if (!this.#video.paused) this.#player.catchUp();
      const stalled = !document.hidden && now - this.#progressAt > STALL_MS;
      if (stalled) this.#failed({ reason: 'The video has stopped', final: false });
    } else if (this.#cover.button.hidden && now - this.#startedAt > this.#firstFrameMs) {
      this.#failed({ reason: 'No video arrived', final: false });
    }
  }

  /** @param {(panel: Panel) => void} unmuted */
  #listen(unmuted) {
    const video = this.#video;
    video.addEventListener('playing', () => {
      if (this.#player === undefined) return;
      this.#cover.element.hidden = true;
      this.#progressAt = performance.now();
      this.#still = false;
      this.#attempts = 0;
      this.#shown = true;
      this.#showUnmute();
      this.#begun();
    });
    video.addEventListener('play', () => this.#player?.catchUp());
    video.addEventListener('loadedmetadata', () => this.#begin());
    for (const press of ['pointerdown', 'pointerup', 'keydown']) {
      video.addEventListener(press, () => (this.#pressedAt = performance.now()));
    }
    video.addEventListener('ratechange', () => (this.#rate = { value: video.playbackRate, at: performance.now() }));
    video.addEventListener('volumechange', () => {
      if (this.#isUnmutedByRate()) {
        video.muted = true;
        this.#begin();
      }
      this.#showUnmute();
      if (!video.muted) unmuted(this);
    });
    this.#unmute.addEventListener('click', () => {
      this.#pressedAt = performance.now();
      video.muted = false;
      video.focus();
    });
    this.#cover.button.addEventListener('click', () => this.#begin());
  }

  /**
   * Whether WebKitGTK turned the audio on: it does so where a player that catches up changes the rate, and then stops the video
   * for having audio that the viewer did not start. It reports the rate last.
   */
  #isUnmutedByRate() {
    const { muted, playbackRate } = this.#video;
    const { value, at } = this.#rate;
    /** @param {number} before */
    const isSoonAfter = (before) => performance.now() - before < SOON_MS;
    return !muted && (playbackRate !== value || isSoonAfter(at)) && !isSoonAfter(this.#pressedAt);
  }

  #start() {
    if (this.#target === undefined) return;
    this.#startedAt = performance.now();
    this.#progressAt = this.#startedAt;
    this.#frames = undefined;
    /** @type {Player} */
    const player = this.#makePlayer(this.#video, {
      failed: (failure) => this.#failed(failure),
      interrupted: () => player === this.#player && this.#interrupted(),
      changed: () => player === this.#player && this.#showChoices(),
    });
    this.#use(player);
    player.start(this.#target.url, this.#shown ? this.#attempts : 0).catch(() => {
      if (player === this.#player) this.#failed({ reason: 'The player could not be loaded', final: false });
    });
  }

  /** @param {Player | undefined} player */
  #use(player) {
    this.#player = player;
    this.#timeline.player = player;
  }

  #begin() {
    this.#video.play().catch((error) => {
      if (error.name !== 'NotAllowedError' || this.#player === undefined) return;
      this.#show('Ready', 'This browser waits for your word before it plays.', false);
      this.#cover.button.hidden = false;
    });
  }

  /** @param {Failure} failure */
  #failed({ reason, final }) {
    if (this.#target === undefined) return;
    this.#player?.close();
    this.#use(undefined);
    this.#clearFigures();
    if (final) {
      this.#target = undefined;
      this.#show(reason ?? '', '', false);
      return;
    }
    this.#reason = reason;
    this.#showWaiting();
    this.#startSoon(this.#attempts++);
    if (this.#shown) this.#troubled();
  }

  /** Shows that the player itself goes on with another server. */
  #interrupted() {
    this.#startedAt = performance.now();
    this.#reason = 'The server does not answer';
    this.#clearFigures();
    this.#showWaiting();
    this.#troubled();
  }

  /** @param {number} attempt */
  #startSoon(attempt) {
    this.#cancelRetry();
    const start = () => {
      this.#retry = undefined;
      this.#start();
    };
    this.#retry = setTimeout(start, spread(RETRY_MS[Math.min(attempt, RETRY_MS.length - 1)] ?? 0));
  }

  #cancelRetry() {
    clearTimeout(this.#retry);
    this.#retry = undefined;
  }

  #showWaiting() {
    const reason = this.#reason;
    const isQuiet = reason === undefined || this.#attempts < QUIET_ATTEMPTS;
    if (this.#excuse !== undefined) this.#show(...this.#excuse);
    else if (this.#shown) this.#show('Reconnecting', reason ?? '', true);
    else if (isQuiet) this.#show('Starting', 'Waiting for the first frame', true);
    else this.#show(reason, 'Trying again', true);
  }

  /** @param {State} state */
  #show(...[title, text, busy]) {
    const { element: cover, image, title: heading, text: line, button } = this.#cover;
    cover.hidden = false;
    button.hidden = true;
    this.#unmute.hidden = true;
    image.classList.toggle('busy', busy);
    if (heading.textContent !== title) heading.textContent = title;
    if (line.textContent !== text) line.textContent = text;
  }

  /** Shows a menu for each choice with several options. Unchanged ones are left alone: the viewer may have one open. */
  #showChoices() {
    const offered = (this.#player?.choices ?? []).filter(({ options }) => options.length > 1);
    for (const [name, { element: menu }] of this.#menus) {
      if (offered.some((choice) => choice.name === name)) continue;
      menu.remove();
      this.#menus.delete(name);
    }
    for (const { name, options, chosen } of offered) {
      const { select } = this.#menus.get(name) ?? this.#addMenu(name);
      while (select.length > options.length) select.lastChild?.remove();
      options.forEach(({ value, label }, at) => {
        const option = select.options[at] ?? select.appendChild(element('option'));
        if (option.value !== `${value}`) option.value = `${value}`;
        if (option.textContent !== label) option.textContent = label;
      });
      select.value = `${chosen}`;
    }
    this.#choices.hidden = offered.length === 0;
  }

  /** @param {string} name of the choice */
  #addMenu(name) {
    const select = element('select', { id: `${this.#video.ariaLabel} ${name}`.replaceAll(' ', '-') });
    select.addEventListener('change', () => this.#player?.choose?.(name, Number(select.value)));
    const menu = element('div', {}, element('label', { textContent: name, htmlFor: select.id }), select);
    menu.dataset['name'] = name;
    this.#choices.append(menu);
    const added = { element: menu, select };
    this.#menus.set(name, added);
    return added;
  }

  #showUnmute() {
    this.#unmute.hidden = !this.#video.muted || !this.#target?.hasAudio || !this.#cover.element.hidden;
  }

  #clearFigures() {
    for (const cell of Object.values(this.#figures)) Object.assign(cell, { textContent: '–', title: '' });
  }

  /** @param {Player} player */
  async #refresh(player) {
    const stats = await player.stats(serverNow());
    if (player === this.#player && this.#cover.element.hidden) this.#fill(stats);
  }

  /** @param {Stats} stats */
  #fill({ at, latency, latencyMeaning, bitrate, frames, dropped }) {
    const { videoWidth, videoHeight } = this.#video;
    const { Latency, Resolution, 'Frame rate': rate, Bitrate, Dropped } = this.#figures;
    Latency.textContent = latency === undefined ? '–' : seconds(latency);
    Latency.title = latencyMeaning;
    Resolution.textContent = videoWidth > 0 ? `${videoWidth}×${videoHeight}` : '–';
    Bitrate.textContent = bitrate === undefined ? '–' : bits(bitrate);
    Dropped.textContent = dropped === undefined ? '–' : `${dropped}`;
    const before = this.#frames;
    if (frames === undefined || at === undefined || videoWidth === 0 || at === before?.at) return;
    this.#frames = { count: frames, at };
    if (before === undefined) return;
    const perSecond = ((frames - before.count) * 1000) / (at - before.at);
    rate.textContent = `${Math.round(Math.max(0, perSecond))} fps`;
  }
}

/** @param {number} value */
function seconds(value) {
  if (value >= 60) return age(value * 1000);
  return value < 1 ? `${Math.round(value * 1000)} ms` : `${value.toFixed(2)} s`;
}
