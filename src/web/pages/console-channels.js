import { element } from './common.js';
import { ApiError, appPath } from './console-api.js';
import { actionButton, heading, Table } from './console-parts.js';

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
      { title: 'Playing', value: playing, sort: playing },
      {
        title: '',
        cell: (row) =>
          actionButton('Delete', () => api.call('DELETE', channelPath(row)), {
            ask: `Delete the channel ${row.name}? Its stream ends for all viewers.`,
            done: `${row.name} was deleted`,
          }),
      },
    ],
    'There is no channel.',
  );
  return {
    element: element('div', {}, heading('Channels'), table.element),
    refresh: async () => {
      const applications = await api.applications();
      const kinds = applications.flatMap((one) => Object.keys(KINDS).map((kind) => ({ ...one, kind })));
      const lists = await Promise.all(kinds.map((one) => names(api, one)));
      const channels = await Promise.all(
        lists.flat().map(async (one) => ({ ...one, channel: await detail(api, one) })),
      );
      table.show(channels, channelKey);
    },
  };
}

/** None where the application has no channels of the kind. */
async function names(api, { vhost, app, kind }) {
  try {
    return (await api.get(`${appPath({ vhost, app })}/${kind}`)).map((name) => ({ vhost, app, kind, name }));
  } catch (error) {
    if (error instanceof ApiError && (error.status === 403 || error.status === 404)) return [];
    throw error;
  }
}

/** undefined for a channel that has just been deleted. */
async function detail(api, one) {
  try {
    return await api.get(channelPath(one));
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}
