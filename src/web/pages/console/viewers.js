import { age, bits, element } from '../common.js';
import { changeButton, Table } from './parts.js';
import { srtText } from './srt.js';

/** @import { SessionSummary } from '../answers.ts' */
/** @import { Api, StreamName } from './api.js' */

/** Viewers of one page. */
const PAGE = 20;

/**
 * Names of the publishers under which statistics count connections.
 * @type {Readonly<Record<string, string>>}
 */
const PROTOCOLS = {
  webrtc: 'WebRTC',
  llhls: 'LL-HLS',
  hlsv3: 'HLS',
  srt: 'SRT',
  rtsp: 'RTSP',
  rtmp: 'RTMP',
  flv: 'HTTP-FLV',
  ovt: 'OVT',
  thumbnail: 'thumbnails',
  file: 'recordings',
  push: 'pushes',
};

/** @param {string} publisher */
const protocolName = (publisher) => PROTOCOLS[publisher] ?? publisher;

/**
 * "WebRTC 3, LL-HLS 5".
 * @param {Readonly<Record<string, number>>} connections of statistics
 */
export function connectionsText(connections) {
  const counts = Object.keys({ ...PROTOCOLS, ...connections }).flatMap((kind) => {
    const count = connections[kind] ?? 0;
    return count > 0 ? [`${protocolName(kind)} ${count}`] : [];
  });
  return counts.join(', ') || 'none';
}

/** The viewers of a stream, page by page. */
export class Viewers {
  #api;
  #stream;
  #table;
  /** Ids after which the pages up to the present one begin. */
  #starts = [''];
  #text = element('span', { className: 'muted' });
  #back = element('button', { type: 'button', textContent: 'Previous' });
  #on = element('button', { type: 'button', textContent: 'Next' });
  #pages = element('p', { className: 'inline pages', hidden: true }, this.#back, this.#on, this.#text);
  #last = '';
  element;

  /**
   * @param {Api} api
   * @param {StreamName} stream
   * @param {string} path of the stream in the API
   */
  constructor(api, stream, path) {
    this.#api = api;
    this.#stream = stream;
    this.#table = sessionTable(api, path);
    this.element = element('div', {}, this.#table.element, this.#pages);
    this.#back.addEventListener('click', () => this.#turn(() => this.#starts.pop()));
    this.#on.addEventListener('click', () => this.#turn(() => this.#starts.push(this.#last)));
  }

  /** @returns {Promise<void>} */
  async refresh() {
    const after = this.#starts.at(-1) ?? '';
    // one more, to know whether there is another page
    const query = new URLSearchParams({ ...this.#stream, after, count: `${PAGE + 1}` });
    /** @type {SessionSummary[]} */
    const found = await this.#api.get(`/v1/cluster/sessions?${query}`);
    // the user has turned the page since
    if (after !== this.#starts.at(-1)) return;
    if (found.length === 0 && this.#starts.length > 1) {
      this.#starts.pop();
      return this.refresh();
    }
    const page = found.slice(0, PAGE);
    this.#last = page.at(-1)?.id ?? '';
    this.#table.show(page, ({ id }) => id);
    const from = (this.#starts.length - 1) * PAGE;
    this.#back.disabled = from === 0;
    this.#on.disabled = found.length <= PAGE;
    this.#pages.hidden = this.#back.disabled && this.#on.disabled;
    this.#text.textContent = `${from + 1} to ${from + page.length}`;
  }

  /** @param {() => void} change */
  #turn(change) {
    change();
    this.#back.disabled = true;
    this.#on.disabled = true;
    // the next refresh of the whole view shows what goes wrong
    this.refresh().catch(() => undefined);
  }
}

/**
 * @param {Api} api
 * @param {string} path of the stream in the API
 * @returns {Table<SessionSummary>}
 */
function sessionTable(api, path) {
  /** @param {SessionSummary} row */
  const protocol = ({ publisher }) => protocolName(publisher);
  return new Table(
    'Viewers',
    [
      { title: 'Session', value: ({ id }) => id, sort: ({ id }) => id },
      { title: 'Protocol', width: 'short', value: protocol, sort: protocol },
      { title: 'Output', value: ({ output }) => output, sort: ({ output }) => output },
      {
        title: 'Since',
        value: ({ createdTime }) => age(Date.now() - Date.parse(createdTime)),
        sort: ({ createdTime }) => createdTime,
        numeric: true,
      },
      { title: 'Bitrate', numeric: true, value: ({ bitrateOut }) => bits(bitrateOut), sort: (row) => row.bitrateOut },
      {
        title: 'Sent',
        numeric: true,
        value: (row) => `${(row.totalBytesOut / 1e6).toFixed(1)} MB`,
        sort: (row) => row.totalBytesOut,
      },
      {
        title: 'Network',
        value: ({ srt }) => (srt === undefined ? '' : srtText(srt)),
        sort: ({ srt }) => srt?.rtt ?? 0,
      },
      { title: 'Node', value: ({ node }) => node, sort: ({ node }) => node },
      {
        title: '',
        cell: ({ id }) =>
          changeButton(api, 'Disconnect', () => api.call('DELETE', `${path}/sessions/${encodeURIComponent(id)}`), {
            done: 'The viewer was disconnected',
          }),
      },
    ],
    'Nobody watches.',
  );
}
