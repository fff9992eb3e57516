import { element } from './common.js';
import { appPath } from './console-api.js';
import { changeButton, heading, Table } from './console-parts.js';

const KINDS = { scheduledChannels: 'Scheduled', multiplexChannels: 'Multiplex' };

const channelPath = ({ vhost, app, kind, name }) => `${appPath({ vhost, app })}/${kind}/${encodeURIComponent(name)}`;
const channelKey = ({ vhost, app, kind, name }) => JSON.stringify([vhost, app, kind, name]);

/** What a channel does at present. */
function stateOf({ kind, channel }) {
  if (channel === undefined) return 'unknown';
  if (kind === 'multiplexChannels') return channel.state ?? 'unknown';
  return channel.currentProgram?.state ?? 'offair';
}

/** What it plays, or waits for. */
function playing({ kind, channel }) {
  if (kind === 'multiplexChannels') {
    const sources = channel?.sourceStreams?.map(({ url }) => url).join(', ') ?? '';
    return channel?.pullingMessage ?? sources;
  }
  const { name = '', currentItem } = channel?.currentProgram ?? {};
  if (currentItem === undefined) return name;
  const { url, currentPosition } = currentItem;
  return `${name}: ${url} at ${Math.round((currentPosition ?? 0) / 1000)} s`;
}

/** The channels of all applications. */
export function channelsView(api) {
  const table = new Table(
    'Channels',
    [
      { title: 'Channel', value: ({ vhost, app, name }) => `${vhost} / ${app} / ${name}`, sort: channelKey },
      { title: 'Kind', value: ({ kind }) => KINDS[kind], sort: ({ kind }) => kind },
      { title: 'State', value: stateOf, sort: stateOf },
      { title: 'Playing', width: 'wide', value: playing, sort: playing },
      {
        title: '',
        cell: (row) =>
          changeButton(api, 'Delete', () => api.call('DELETE', channelPath(row)), {
            ask: `Delete the channel ${row.name}? Its stream ends for all viewers.`,
            done: `${row.name} was deleted`,
          }),
      },
    ],
    'There is no channel.',
  );
  return {
    element: element('div', {}, heading('Channels'), table.element),
    refresh: async () => table.show(await api.get('/v1/cluster/channels'), channelKey),
  };
}
