import { age, bits, element } from '../common.js';
import { changeButton, Table } from './parts.js';

/** Viewers that are shown at a time. */
const PAGE = 20;

/** What statistics count connections under, in words. */
const PROTOCOLS = {
  webrtc: 'WebRTC',
  llhls: 'LL-HLS',
  hlsv3: 'HLS',
  srt: 'SRT',
  ovt: 'OVT',
  thumbnail: 'thumbnails',
  file: 'recordings',
  push: 'pushes',
};

const protocolName = (publisher) => PROTOCOLS[publisher] ?? publisher;

/** "WebRTC 3, LL-HLS 5" of `connections` of statistics. */
export function connectionsText(connections) {
  const kinds = Object.keys({ ...PROTOCOLS, ...connections }).filter((kind) => connections[kind] > 0);
  return kinds.map((kind) => `${protocolName(kind)} ${connections[kind]}`).join(', ') || 'none';
}

/** Who plays a stream, some at a time. @param path of the stream in the API */
export class Viewers {
  #api;
  #stream;
  #table;
  /** The ids that the pages until the one that is shown begin after. */
  #starts = [''];
  #text = element('span', { className: 'muted' });
  #back = element('button', { type: 'button', textContent: 'Previous' });
  #on = element('button', { type: 'button', textContent: 'Next' });
  #pages = element('p', { className: 'inline pages', hidden: true }, this.#back, this.#on, this.#text);
  #last = '';
  element;

  constructor(api, stream, path) {
    this.#api = api;
    this.#stream = stream;
    this.#table = sessionTable(api, path);
    this.element = element('div', {}, this.#table.element, this.#pages);
    this.#back.addEventListener('click', () => this.#turn(() => this.#starts.pop()));
    this.#on.addEventListener('click', () => this.#turn(() => this.#starts.push(this.#last)));
  }

  async refresh() {
    const after = this.#starts.at(-1);
    // one more tells whether there is another page
    const query = new URLSearchParams({ ...this.#stream, after, count: PAGE + 1 });
    const found = await this.#api.get(`/v1/cluster/sessions?${query}`);
    // another page was asked for meanwhile
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

  #turn(change) {
    change();
    this.#back.disabled = true;
    this.#on.disabled = true;
    // what goes wrong is told by the next refresh of the whole view
    this.refresh().catch(() => undefined);
  }
}

function sessionTable(api, path) {
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
