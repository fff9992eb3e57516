import { element } from '../common.js';
import { appPath } from './api.js';

/** @import { NodeInfo, RecordedFile, Statistics } from '../answers.ts' */
/** @import { Api, AppName } from './api.js' */

/** Longest clip, in seconds. */
const MAX_SECONDS = 86_400;
/** Codecs that MP4 carries, of those that MPEG-TS does. */
const CARRIED = new Set(['H264', 'H265', 'AAC', 'MP3', 'OPUS']);

/** Where recorded files of an application are played, if its configuration has `Playback`. */
export class PlayAddresses {
  /** @type {readonly NodeInfo[]} */
  #nodes = [];
  #isPlayed = false;

  /**
   * @param {Api} api
   * @param {AppName | undefined} application
   */
  async refresh(api, application) {
    if (application === undefined) return;
    /** @type {Promise<Statistics>} */
    const statistics = api.get(`/v1/stats/current/${appPath(application).slice('/v1/'.length)}`);
    const [nodes, { connections }] = await Promise.all([api.nodes(), statistics]);
    this.#nodes = nodes;
    // counted where an application has it alone
    this.#isPlayed = connections.playback !== undefined;
  }

  /**
   * URL of a file as MP4; undefined where it cannot be played.
   * @param {RecordedFile} file
   */
  of(file) {
    const { id, app, stream, node, startTime, duration } = file;
    if (!this.#isPlayed || !isPlayable(file)) return undefined;
    const base = this.#base(node);
    if (base === undefined) return undefined;
    // to its very end: durations are rounded
    const seconds = Math.min(MAX_SECONDS, Math.ceil(duration) + 1);
    const start = new Date(startTime).toISOString();
    const query = new URLSearchParams({ start, duration: `${seconds}`, format: 'mp4', id });
    return `${base}/${encodeURIComponent(app)}/${encodeURIComponent(stream)}/get?${query}`;
  }

  /**
   * Any node answers: the one that has the file, else another one.
   * @param {string} owner
   */
  #base(owner) {
    const ready = this.#nodes.filter(({ state }) => state === 'ready');
    ready.sort((a, b) => Number(b.id === owner) - Number(a.id === owner));
    const bases = ready.flatMap(({ addresses: { llhls = [], hls = [] } }) => [...llhls, ...hls]);
    return bases.find((base) => base.startsWith(`${location.protocol}//`)) ?? bases[0];
  }
}

/**
 * Whether a file is played as MP4: in MPEG-TS where its node has it, and MP4 carries its video, or its audio alone.
 * @param {RecordedFile} file
 */
function isPlayable({ type, duration, container, isLocal, upload, tracks }) {
  if (type !== 'file' || duration === 0) return false;
  if (container === 'MP4') return isLocal || upload?.state === 'uploaded';
  if (container !== 'MPEG-TS' || !isLocal) return false;
  if (tracks === undefined) return true;
  const leading = tracks.some((track) => track.type === 'video') ? 'video' : 'audio';
  return tracks.some((track) => track.type === leading && CARRIED.has(track.codec));
}

/** Links that play and save a recorded file. */
export class RecordedLinks {
  #addresses;
  #play = element('a', { textContent: 'Play', target: '_blank', rel: 'noopener' });
  #save = element('a', { textContent: 'Download', rel: 'noopener' });
  element = element('span', {}, this.#play, ' · ', this.#save);

  /** @param {PlayAddresses} addresses */
  constructor(addresses) {
    this.#addresses = addresses;
  }

  /** @param {RecordedFile} file */
  update(file) {
    const url = this.#addresses.of(file);
    this.element.hidden = url === undefined;
    if (url === undefined) return;
    for (const [link, what, href] of /** @type {const} */ ([
      [this.#play, 'Play', url],
      [this.#save, 'Download', `${url}&download`],
    ]))
      if (link.href !== href) Object.assign(link, { href, ariaLabel: `${what} ${file.path}` });
  }
}
