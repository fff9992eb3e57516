import { SilenceWatch } from './silence.js';
import { LOST, Refusal, WhepSession } from './whep-session.js';
import { WhepSubtitles } from './whep-subtitles.js';

/** @import { ShownSubtitles } from './answers.ts' */
/** @import { Choice, PlayerEvents } from './panel.js' */
/** @import { Failure } from './whep-session.js' */

const OFFER_TIMEOUT_MS = { most: 10_000, again: 2500 };
const SHORT_ATTEMPTS = 4;
/** Pauses between offers of a viewer that comes back, while no node answers. */
const PAUSES_MS = [300, 600];
/** Interval of checks whether media came. */
const LISTEN_EVERY_MS = 250;
/** When a node has not confirmed the session for so long, another session is requested. */
const SPARE_AFTER_MS = 250;

/**
 * Timeout and pauses of a session's offers. A stream that is starting may take a while. A dead node keeps viewers that come
 * back waiting until load balancers have noticed; a node that all of them reach may be slow to answer.
 * @param {number} attempt since it played last; 0 where it has not played yet
 */
export function offerTerms(attempt) {
  const isShort = attempt > 0 && attempt <= SHORT_ATTEMPTS;
  return {
    timeoutMs: isShort ? OFFER_TIMEOUT_MS.again : OFFER_TIMEOUT_MS.most,
    pauses: attempt > 0 ? PAUSES_MS : [],
  };
}

/**
 * Plays a WHEP resource in a video element (WebRTC). When no media comes, and no node confirms the session, it goes on with
 * another one; it ends when there is none, and when the server closes DTLS.
 */
export class WhepPlayer {
  #video;
  #failed;
  #interrupted;
  /** Undefined for a stream without. @type {WhepSubtitles | undefined} */
  #subtitles;
  #changed;
  #url = '';
  /** @type {WhepSession | undefined} */
  #session;
  /** Requested to replace the session. @type {WhepSession | undefined} */
  #spare;
  #closed = false;
  #abort = new AbortController();
  /** @type {number | undefined} */
  #listening;
  /** @type {{ at: number, bytes: number, delay: number, frames: number } | undefined} */
  #last;
  /** Frames since the last reading, and the sum of their milliseconds from receipt to the screen. */
  #shown = { frames: 0, delay: 0 };

  /**
   * @param {HTMLVideoElement} video
   * @param {PlayerEvents} events `failed` is called once at most; nothing plays after it. `interrupted` is called when the session is
   *   lost, and the player waits for another one
   * @param {readonly ShownSubtitles[] | undefined} subtitles that come with the stream; undefined where that is not known
   */
  constructor(video, { failed, interrupted, changed }, subtitles) {
    this.#video = video;
    this.#failed = failed;
    this.#interrupted = interrupted;
    this.#changed = changed;
    if (subtitles?.length === 0) return;
    this.#subtitles = new WhepSubtitles(video, subtitles ?? [], changed);
  }

  /**
   * @param {string} url
   * @param {number} attempt since it played last; 0 where it has not played yet
   */
  async start(url, attempt) {
    if (typeof RTCPeerConnection === 'undefined') {
      this.#fail({ reason: 'This browser has no WebRTC', final: true });
      return;
    }
    addEventListener('pagehide', () => this.close(), { signal: this.#abort.signal });
    this.#url = url;
    if (this.#subtitles !== undefined) this.#changed();
    this.#watchFrames();
    try {
      this.#session = this.#newSession();
      await this.#session.offer(url, offerTerms(attempt));
      await this.#play(this.#session);
    } catch (error) {
      this.#fail(failureOf(error));
    }
  }

  /** Reads the statistics. */
  async stats() {
    return {
      latencyMeaning:
        'Half the round trip to the server, plus the time from a frame coming here to this screen showing it',
      ...(this.#session && this.#read(await this.#session.report())),
    };
  }

  catchUp() {}

  /** @returns {Choice[]} */
  get choices() {
    return this.#subtitles === undefined ? [] : [this.#subtitles.choice];
  }

  /**
   * @param {string} _name of the only choice
   * @param {number} value
   */
  choose(_name, value) {
    this.#subtitles?.choose(value);
  }

  close() {
    if (this.#closed) return;
    this.#closed = true;
    this.#abort.abort();
    clearInterval(this.#listening);
    this.#session?.close();
    this.#spare?.close();
    this.#subtitles?.close();
    this.#video.srcObject = null;
  }

  #newSession() {
    const subtitles = this.#subtitles;
    return new WhepSession(subtitles && ((message) => subtitles.take(message)));
  }

  /** @param {WhepSession} session */
  async #play(session) {
    if (this.#closed) return;
    this.#session = session;
    this.#last = undefined;
    this.#subtitles?.clear();
    this.#listen(session);
    await session.begin(
      (stream) => (this.#video.srcObject = stream),
      (failure) => this.#fail(failure),
    );
  }

  /** @param {WhepSession} session */
  #listen(session) {
    const silence = new SilenceWatch(performance.now());
    let busy = false;
    clearInterval(this.#listening);
    this.#listening = setInterval(async () => {
      if (busy) return;
      busy = true;
      try {
        const received = await session.received();
        if (!silence.heard(received, performance.now()) || this.#closed) return;
        if (await this.#isKept(session, received > 0)) silence.explained(performance.now());
      } catch (error) {
        this.#fail(failureOf(error));
      } finally {
        busy = false;
      }
    }, LISTEN_EVERY_MS);
  }

  /**
   * Whether a silent session goes on. One that has never brought media has no spare: its player is started again, less and
   * less often.
   * @param {WhepSession} session
   * @param {boolean} hasPlayed
   */
  async #isKept(session, hasPlayed) {
    const known = session.isKnown();
    const isKnown = await (hasPlayed ? Promise.race([known, spareTime()]) : known);
    if (isKnown === undefined) return await this.#isKeptOrReplaced(session, known);
    if (!isKnown) throw LOST;
    return isKnown;
  }

  /**
   * Requests another session while no node answers for this one, and plays the one that is answered first.
   * @param {WhepSession} session
   * @param {Promise<boolean>} known
   * @returns whether that is the present one
   */
  async #isKeptOrReplaced(session, known) {
    const spare = this.#newSession();
    this.#spare = spare;
    const kept = known.then((isKnown) => {
      if (isKnown) return true;
      if (this.#spare === spare && !this.#closed) this.#interrupted();
      throw LOST;
    });
    const replaced = spare.offer(this.#url, offerTerms(1)).then(() => false);
    const isKept = await Promise.any([kept, replaced]).catch(({ errors }) => Promise.reject(errors.at(-1)));
    if (this.#closed) return false;
    this.#spare = undefined;
    if (isKept) {
      spare.close();
      return true;
    }
    this.#interrupted();
    session.close();
    await this.#play(spare);
    return false;
  }

  /** @param {Failure} failure */
  #fail({ reason, final }) {
    if (this.#closed) return;
    this.close();
    this.#failed({ reason, final });
  }

  #watchFrames() {
    this.#video.requestVideoFrameCallback?.((_now, { receiveTime, expectedDisplayTime }) => {
      if (this.#closed) return;
      if (receiveTime !== undefined) {
        this.#shown.frames++;
        this.#shown.delay += expectedDisplayTime - receiveTime;
      }
      this.#watchFrames();
    });
  }

  /** @param {RTCStatsReport} report */
  #read(report) {
    let video;
    let bytes = 0;
    /** @type {number | undefined} */
    let rtt;
    for (const entry of report.values()) {
      if (entry.type === 'inbound-rtp') {
        bytes += entry.bytesReceived;
        if (entry.kind === 'video') video = entry;
      }
      if (entry.type === 'candidate-pair' && entry.nominated) rtt = entry.currentRoundTripTime ?? rtt;
    }
    if (video === undefined) return undefined;
    const now = { at: video.timestamp, bytes, delay: delayOf(video), frames: video.framesDecoded };
    const last = this.#last;
    this.#last = now;
    const shown = this.#shown;
    this.#shown = { frames: 0, delay: 0 };
    const counted = { at: now.at, frames: now.frames, dropped: video.framesDropped };
    if (last === undefined || now.at <= last.at) return counted;
    const frames = now.frames - last.frames;
    let held;
    if (shown.frames > 0) held = shown.delay / shown.frames / 1000;
    else if (frames > 0) held = (now.delay - last.delay) / frames;
    return {
      ...counted,
      latency: rtt === undefined || held === undefined ? undefined : rtt / 2 + held,
      bitrate: ((now.bytes - last.bytes) * 8000) / (now.at - last.at),
    };
  }
}

/**
 * Sum of the seconds that frames spent in this browser, from their first packet until they were decoded.
 * @param {{ totalProcessingDelay?: number, jitterBufferDelay?: number, totalDecodeTime?: number }} video
 */
function delayOf(video) {
  return video.totalProcessingDelay ?? (video.jitterBufferDelay ?? 0) + (video.totalDecodeTime ?? 0);
}

/**
 * Waits for a random time: viewers that lose their server together do not all request another session at once.
 * @returns {Promise<undefined>}
 */
const spareTime = () => new Promise((resolve) => setTimeout(resolve, SPARE_AFTER_MS * (1 + Math.random())));

/**
 * @param {unknown} error
 * @returns {Failure}
 */
function failureOf(error) {
  if (error === LOST) return LOST;
  return error instanceof Refusal ? error : { reason: 'The server cannot be reached', final: false };
}
