import { age, bits, element } from '../common.js';
import { heading, Sparkline, Table } from './parts.js';
import { StreamImage } from './stream-image.js';

/** @import { StreamSummary } from '../answers.ts' */
/** @import { Api, StreamName } from './api.js' */
/** @import { View } from './parts.js' */

/** More rows take the browser long. */
const MOST_ROWS = 200;

/** @param {StreamName} stream */
export const streamKey = ({ vhost, app, stream }) => JSON.stringify([vhost, app, stream]);

/** @param {StreamName} stream */
const pathOf = ({ vhost, app, stream }) => `#/streams/${[vhost, app, stream].map(encodeURIComponent).join('/')}`;

/** @param {StreamSummary} row */
const videoText = ({ video }) => (video ? `${video.width}×${video.height} ${video.framerate} fps ${video.codec}` : '–');

/**
 * A table of streams.
 * @param {Api} api
 * @param {string} caption
 * @param {string} empty text while there are no rows
 * @param {string} [first] title of the column to sort by at first
 * @returns {Table<StreamSummary>}
 */
export function streamTable(api, caption, empty, first) {
  return new Table(
    caption,
    [
      {
        title: 'Stream',
        width: 'wide',
        sort: ({ vhost, app, stream }) => `${vhost}/${app}/${stream}`,
        cell: (row) => new NamedImage(api, row),
      },
      { title: 'Viewers', numeric: true, value: ({ viewers }) => viewers, sort: ({ viewers }) => viewers },
      { title: 'In', numeric: true, sort: (row) => row.bitrateIn, cell: () => new Rate() },
      { title: 'Out', numeric: true, value: ({ bitrateOut }) => bits(bitrateOut), sort: (row) => row.bitrateOut },
      { title: 'Source', value: ({ sourceType }) => sourceType, sort: ({ sourceType }) => sourceType },
      { title: 'Video', width: 'short', value: videoText, sort: ({ video }) => video?.height ?? 0 },
      { title: 'Audio', value: ({ audio }) => audio?.codec ?? '–', sort: ({ audio }) => audio?.codec ?? '' },
      {
        title: 'Live for',
        numeric: true,
        value: ({ createdTime }) => age(Date.now() - Date.parse(createdTime)),
        sort: ({ createdTime }) => -Date.parse(createdTime),
      },
      { title: 'Node', value: ({ node }) => node, sort: ({ node }) => node },
    ],
    empty,
    first,
    MOST_ROWS,
  );
}

/** The thumbnail of a stream, and its name as a link. */
class NamedImage {
  #image;
  element;

  /**
   * @param {Api} api
   * @param {StreamSummary} row
   */
  constructor(api, row) {
    this.#image = new StreamImage(api, row);
    const link = element('a', { href: pathOf(row) }, `${row.vhost} / ${row.app} / `, element('b', {}, row.stream));
    this.element = element('span', { className: 'pictured' }, this.#image.element, link);
  }

  /** @param {StreamSummary} row */
  update(row) {
    this.#image.update(row);
  }
}

/** A bit rate and its recent values. */
class Rate {
  #text = element('span');
  #line = new Sparkline();
  element = element('span', { className: 'rate' }, this.#line.element, this.#text);

  /** @param {StreamSummary} row */
  update({ bitrateIn }) {
    this.#text.textContent = bits(bitrateIn);
    this.#line.add(bitrateIn);
  }
}

/**
 * All streams of the cluster.
 * @param {Api} api
 * @returns {View}
 */
export function streamsView(api) {
  const filter = element('input', {
    type: 'search',
    id: 'filter',
    placeholder: 'Name, node, codec',
    autocomplete: 'off',
  });
  const count = element('span', { className: 'muted' });
  count.role = 'status';
  const table = streamTable(api, 'Streams', 'No stream matches.');
  /** @type {StreamSummary[]} */
  let streams = [];
  const show = () => {
    const wanted = filter.value.trim().toLowerCase();
    const shown = streams.filter((stream) => JSON.stringify(stream).toLowerCase().includes(wanted));
    count.textContent = shown.length === streams.length ? `${streams.length}` : `${shown.length} of ${streams.length}`;
    table.show(shown, streamKey);
  };
  filter.addEventListener('input', show);
  return {
    element: element(
      'div',
      {},
      heading('Streams', count, element('label', { htmlFor: 'filter', className: 'unseen' }, 'Filter'), filter),
      table.element,
    ),
    refresh: async () => {
      streams = await api.streams();
      show();
    },
  };
}
