import { bits } from './common.js';
import { CATCH_UP_RATE, Rewinder } from './rewinder.js';
import { OFF, subtitleChoice, SUBTITLES, wantedSubtitles, wantSubtitles } from './subtitles.js';

/** @import Hls, { FragBufferedData, Level } from './hls.js' */
/** @import { Choice, Stats } from './panel.js' */
/** @import { Failure } from './whep-session.js' */

/** Seconds behind the wanted latency from which the player jumps; less is caught up by playing faster. */
const TOO_FAR_BEHIND = 2;
const JUMP_PAUSE_MS = 8000;
const RATE_WINDOW_SECONDS = 4;
const LOAD_TIMES = { maxTimeToFirstByteMs: 10_000, maxLoadTimeMs: 15_000 };
/** The server holds the master playlist of a stream that begins for 10 s. */
const MASTER_LOAD_TIMES = { ...LOAD_TIMES, maxTimeToFirstByteMs: 12_000 };
/**
 * hls.js plays nothing before the first whole segment: until then it asks for playlists again, and must
 * outlast a long segment. It counts the tries of video and audio together.
 */
/** @type {import('hls.js').RetryConfig} */
const PLAYLIST_RETRY = { maxNumRetry: 80, retryDelayMs: 500, maxRetryDelayMs: 500, backoff: 'linear' };

/**
 * Labels that the viewer chose, by the name of the choice. They outlive a player that is started again.
 * @type {Map<string, string | undefined>}
 */
const wanted = new Map();
const QUALITY = 'Quality';
const AUDIO = 'Audio';
const AUTO = -1;

/**
 * Plays an LL-HLS master playlist in a video element, by hls.js or, where there is no
 * Media Source Extensions (iPhone), by the browser itself, which then chooses the quality.
 */
export class LlhlsPlayer {
  #video;
  #failed;
  #changed;
  /** @type {Hls | undefined} */
  #hls;
  /** Undefined until hls.js is loaded, and where it does not play. @type {Rewinder | undefined} */
  rewinder;
  #rewinds;
  #closed = false;
  #jumpedAt = -Infinity;
  /**
   * Bytes and seconds of the newest video and audio fragments, to calculate the bitrate.
   * @type {Partial<Record<string, { bytes: number, seconds: number }[]>>}
   */
  #loads = { main: [], audio: [] };

  /**
   * @param {HTMLVideoElement} video
   * @param {(failure: Failure) => void} failed called once at most; nothing plays after it
   * @param {() => void} changed called when `choices` has other contents
   * @param {() => boolean | undefined} rewinds as of `Rewinder`
   */
  constructor(video, failed, changed, rewinds) {
    this.#video = video;
    this.#failed = failed;
    this.#changed = changed;
    this.#rewinds = rewinds;
  }

  /** @param {string} url */
  async start(url) {
    const { default: Hls } = await import('./hls.js');
    if (this.#closed) return;
    if (!Hls.isSupported()) {
      this.#startNative(url);
      return;
    }
    const hls = new Hls({
      lowLatencyMode: true,
      enableWorker: false,
      backBufferLength: 20,
      maxLiveSyncPlaybackRate: CATCH_UP_RATE,
      // The panel starts again by itself: one layer retries.
      manifestLoadPolicy: { default: { ...MASTER_LOAD_TIMES, timeoutRetry: null, errorRetry: null } },
      playlistLoadPolicy: { default: { ...LOAD_TIMES, timeoutRetry: PLAYLIST_RETRY, errorRetry: PLAYLIST_RETRY } },
    });
    this.#hls = hls;
    const rewinder = new Rewinder(hls, this.#video, this.#rewinds);
    this.rewinder = rewinder;
    hls.on(Hls.Events.MANIFEST_LOADED, (_event, { startTimeOffset }) => (rewinder.start = startTimeOffset));
    hls.on(Hls.Events.ERROR, (_event, error) => {
      if (error.fatal) this.#fail(reasonOf(error));
    });
    hls.on(Hls.Events.FRAG_BUFFERED, (_event, { frag, part, stats }) => this.#noteLoad(frag, part, stats));
    hls.on(Hls.Events.MANIFEST_PARSED, () => this.#chooseQuality(hls, wantedLevel(hls)));
    hls.on(Hls.Events.AUDIO_TRACKS_UPDATED, () => chooseWantedAudio(hls));
    hls.on(Hls.Events.SUBTITLE_TRACKS_UPDATED, () => chooseWantedSubtitles(hls));
    for (const event of /** @type {const} */ ([
      'MANIFEST_PARSED',
      'LEVEL_SWITCHED',
      'LEVELS_UPDATED',
      'AUDIO_TRACKS_UPDATED',
      'AUDIO_TRACK_SWITCHED',
      'SUBTITLE_TRACKS_UPDATED',
      'SUBTITLE_TRACK_SWITCH',
    ])) {
      hls.on(Hls.Events[event], () => this.#changed());
    }
    hls.attachMedia(this.#video);
    hls.loadSource(url);
  }

  /**
   * Choices of the viewer, the best quality first.
   * @returns {Choice[]}
   */
  get choices() {
    const hls = this.#hls;
    if (hls === undefined) return [];
    const labels = levelLabels(hls.levels);
    const auto = hls.autoLevelEnabled;
    const now = auto && labels[hls.currentLevel] !== undefined ? ` (${labels[hls.currentLevel]})` : '';
    const levels = labels.map((label, value) => ({ value, label })).reverse();
    return [
      {
        name: QUALITY,
        options: levels.length > 1 ? [{ value: AUTO, label: `Auto${now}` }, ...levels] : levels,
        chosen: auto ? AUTO : hls.loadLevel,
      },
      {
        name: AUDIO,
        options: hls.audioTracks.map(({ name }, value) => ({ value, label: name })),
        chosen: hls.audioTrack,
      },
      subtitleChoice(
        hls.subtitleTracks.map(({ name }) => name),
        hls.subtitleTrack,
      ),
    ];
  }

  /**
   * Plays another option of a choice.
   * @param {string} name
   * @param {number} value
   */
  choose(name, value) {
    const options = this.choices.find((choice) => choice.name === name)?.options;
    if (this.#hls === undefined || options === undefined) return;
    const label = options.find((option) => option.value === value)?.label;
    if (name === SUBTITLES) {
      wantSubtitles(value === OFF ? undefined : label);
      this.#hls.subtitleTrack = value;
      this.#changed();
      return;
    }
    wanted.set(name, value === AUTO ? undefined : label);
    if (name === AUDIO) this.#hls.audioTrack = value;
    else this.#chooseQuality(this.#hls, value);
    this.#changed();
  }

  /**
   * @param {number} serverNow
   * @returns {Promise<Stats>}
   */
  async stats(serverNow) {
    const quality = this.#video.getVideoPlaybackQuality?.();
    return {
      at: performance.now(),
      latency: this.#latency(serverNow),
      latencyMeaning: 'From the server receiving a picture to this screen showing it, by the times in the playlist',
      bitrate: this.#bitrate(),
      frames: quality?.totalVideoFrames,
      dropped: quality?.droppedVideoFrames,
    };
  }

  /**
   * Goes on at the live edge after a pause, a stall, or a start while there was little to choose from; not with viewers who have
   * rewound.
   */
  catchUp() {
    this.rewinder?.tick();
    if (this.rewinder?.followsEdge === false) return;
    const wanted = this.#hls?.liveSyncPosition;
    const now = performance.now();
    if (wanted == null || now - this.#jumpedAt < JUMP_PAUSE_MS) return;
    if (wanted - this.#video.currentTime < TOO_FAR_BEHIND) return;
    this.#jumpedAt = now;
    this.#video.currentTime = wanted;
  }

  close() {
    if (!this.#closed) this.rewinder?.close();
    this.#closed = true;
    this.#hls?.destroy();
    this.#video.onerror = null;
    this.#video.removeAttribute('src');
    this.#video.load();
  }

  /**
   * Switches at the next segment, whatever is buffered.
   * @param {Hls} hls
   * @param {number} level
   */
  #chooseQuality(hls, level) {
    if (level === AUTO) hls.loadLevel = AUTO;
    else hls.nextLevel = level;
  }

  /** @param {string} url */
  #startNative(url) {
    if (this.#video.canPlayType('application/vnd.apple.mpegurl') === '') {
      this.#fail({ reason: 'This browser cannot play HLS', final: true });
      return;
    }
    this.#video.onerror = () => this.#fail({ reason: 'The playlist could not be played', final: false });
    this.#video.src = url;
  }

  /** @param {Failure} failure */
  #fail(failure) {
    if (this.#closed) return;
    this.close();
    this.#failed(failure);
  }

  /** @param {number} serverNow */
  #latency(serverNow) {
    const playing = this.#hls?.playingDate ?? startDate(this.#video);
    if (playing == null) return this.#hls?.latency || undefined;
    return Math.max(0, (serverNow - playing.getTime()) / 1000);
  }

  /**
   * @param {FragBufferedData['frag']} frag
   * @param {FragBufferedData['part']} part
   * @param {FragBufferedData['stats']} stats
   */
  #noteLoad(frag, part, stats) {
    const loads = this.#loads[frag.type];
    if (loads === undefined || frag.sn === 'initSegment') return;
    const bytes = stats.total || stats.loaded;
    const seconds = part === null ? frag.duration : part.duration;
    loads.push({ bytes, seconds });
    let total = loads.reduce((sum, load) => sum + load.seconds, 0);
    for (const { seconds: first } of [...loads]) {
      if (loads.length === 1 || total - first < RATE_WINDOW_SECONDS) break;
      loads.shift();
      total -= first;
    }
  }

  #bitrate() {
    let rate = 0;
    for (const loads of Object.values(this.#loads)) {
      if (loads === undefined) continue;
      const seconds = loads.reduce((sum, load) => sum + load.seconds, 0);
      if (seconds > 0) rate += (loads.reduce((sum, load) => sum + load.bytes, 0) * 8) / seconds;
    }
    return rate || undefined;
  }
}

/** @param {Hls} hls */
function wantedLevel(hls) {
  const label = wanted.get(QUALITY);
  return label === undefined ? AUTO : levelLabels(hls.levels).indexOf(label);
}

/** @param {Hls} hls */
function chooseWantedAudio(hls) {
  const track = hls.audioTracks.findIndex(({ name }) => name === wanted.get(AUDIO));
  if (track >= 0 && track !== hls.audioTrack) hls.audioTrack = track;
}

/** @param {Hls} hls */
function chooseWantedSubtitles(hls) {
  const tracks = hls.subtitleTracks.map(({ name, default: isDefault }) => ({ label: name, isDefault }));
  const track = wantedSubtitles(tracks);
  if (track !== hls.subtitleTrack) hls.subtitleTrack = track;
}

/**
 * "720p", "720p60", with the bitrate where renditions have the same size.
 * @param {readonly Level[]} levels
 */
function levelLabels(levels) {
  const sizes = levels.map(({ height, frameRate }) =>
    height > 0 ? `${height}p${frameRate > 30 ? Math.round(frameRate) : ''}` : 'Audio only',
  );
  return sizes.map((size, at) =>
    sizes.indexOf(size) === sizes.lastIndexOf(size) ? size : `${size}, ${bits(levels[at]?.bitrate ?? 0)}`,
  );
}

/** @param {HTMLVideoElement & { getStartDate?: () => Date }} video WebKit's has `getStartDate` */
function startDate(video) {
  const start = video.getStartDate?.().getTime();
  return start !== undefined && start > 0 ? new Date(start + video.currentTime * 1000) : undefined;
}

/**
 * @param {{ type: string, details: string, response?: { code?: number } }} error of hls.js
 * @returns {Failure}
 */
function reasonOf({ type, details, response }) {
  const status = response?.code;
  if (status === 400) return { reason: 'The address of this page asks for what the server does not know', final: true };
  if (status === 401 || status === 403) return { reason: 'You are not allowed to watch this stream', final: true };
  if (details === 'manifestIncompatibleCodecsError' || details === 'bufferAddCodecError') {
    return { reason: 'This browser cannot decode the codec of this stream', final: true };
  }
  if (status === 503) return { reason: 'The server cannot play this stream now', final: false };
  // The server answers 201 without a body where it has waited in vain for the first frame.
  if (details.startsWith('manifest') || details === 'levelEmptyError') return { reason: undefined, final: false };
  if (type === 'networkError') return { reason: 'The connection to the server was lost', final: false };
  return { reason: 'The video could not be decoded', final: false };
}
