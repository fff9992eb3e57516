import { age, bits, element } from '../common.js';
import { heading, Sparkline, Table } from './parts.js';
import { StreamPicture } from './picture.js';

/** More rows take the browser long, and are more than anybody reads. */
const MOST_ROWS = 200;

export const streamKey = ({ vhost, app, stream }) => JSON.stringify([vhost, app, stream]);

const pathOf = ({ vhost, app, stream }) => `#/streams/${[vhost, app, stream].map(encodeURIComponent).join('/')}`;

const videoText = ({ video }) => (video ? `${video.width}×${video.height} ${video.framerate} fps ${video.codec}` : '–');

/** A table of streams as `/v1/cluster/streams` lists them. @param first title of the column that it is sorted by at first */
export function streamTable(api, caption, empty, first) {
  return new Table(
    caption,
    [
      {
        title: 'Stream',
        width: 'wide',
        sort: ({ vhost, app, stream }) => `${vhost}/${app}/${stream}`,
        cell: (row) => new NamedPicture(api, row),
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

/** The picture of a stream, and its name as a link. */
class NamedPicture {
  #picture;
  element;

  constructor(api, row) {
    this.#picture = new StreamPicture(api, row);
    const link = element('a', { href: pathOf(row) }, `${row.vhost} / ${row.app} / `, element('b', {}, row.stream));
    this.element = element('span', { className: 'pictured' }, this.#picture.element, link);
  }

  update(row) {
    this.#picture.update(row);
  }
}

/** A bit rate and what it was before. */
class Rate {
  #text = element('span');
  #line = new Sparkline();
  element = element('span', { className: 'rate' }, this.#line.element, this.#text);

  update({ bitrateIn }) {
    this.#text.textContent = bits(bitrateIn);
    this.#line.add(bitrateIn);
  }
}

/** All streams of the cluster. */
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
      streams = await api.get('/v1/cluster/streams');
      show();
    },
  };
}
