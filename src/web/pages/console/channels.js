import { element } from '../common.js';
import { appPath } from './api.js';
import { Editor } from './editor.js';
import { changeButton, Choice, heading, Table } from './parts.js';

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

/** Has the answer tell what should be mended of a schedule. */
const ASK_PROBLEMS = '?problems=true';

/** A channel of each kind to begin with, which plays what the application may have. */
const EXAMPLES = {
  scheduledChannels: () => ({
    stream: { name: 'tv' },
    fallbackProgram: { items: [{ url: 'file://pause.mp4' }] },
    programs: [
      { name: 'all day', scheduled: new Date().toISOString(), repeat: true, items: [{ url: 'file://show.mp4' }] },
    ],
  }),
  multiplexChannels: ({ vhost, app }) => ({
    outputStream: { name: 'both' },
    sourceStreams: ['one', 'two'].map((name, at) => ({
      name,
      url: `stream://${vhost}/${app}/${name}`,
      trackMap: [{ sourceTrackName: 'bypass_video', newTrackName: `v${at + 1}` }],
    })),
    playlists: [{ name: 'both', fileName: 'both', renditions: [{ video: 'v1' }, { video: 'v2' }] }],
  }),
};

/** The channels of all applications. */
export function channelsView(api) {
  const editor = new Editor();
  const applications = new Choice('application', 'Application');
  let found = [];
  const named = ({ vhost, app }) => `${vhost} / ${app}`;
  const create = (kind) =>
    changeButton(api, `New ${KINDS[kind].toLowerCase()} channel`, async () => {
      const application = found.find((one) => named(one) === applications.chosen);
      if (application === undefined) throw new Error('Create an application first');
      const title = `New ${KINDS[kind].toLowerCase()} channel of ${named(application)}`;
      editor.edit(title, 'It begins as soon as it is created.', EXAMPLES[kind](application), (text) =>
        api.call('POST', `${appPath(application)}/${kind}${kind === 'scheduledChannels' ? ASK_PROBLEMS : ''}`, text),
      );
    });
  const table = new Table(
    'Channels',
    [
      { title: 'Channel', value: ({ vhost, app, name }) => `${vhost} / ${app} / ${name}`, sort: channelKey },
      { title: 'Kind', value: ({ kind }) => KINDS[kind], sort: ({ kind }) => kind },
      { title: 'State', value: stateOf, sort: stateOf },
      { title: 'Playing', width: 'wide', value: playing, sort: playing },
      {
        title: '',
        cell: (row) => {
          const change = changeButton(api, 'Change', () => CHANGES[row.kind](api, editor, row));
          const remove = changeButton(api, 'Delete', () => api.call('DELETE', channelPath(row)), {
            ask: `Delete the channel ${row.name}? Its stream ends for all viewers.`,
            done: `${row.name} was deleted`,
          });
          return element('span', { className: 'actions' }, change, remove);
        },
      },
    ],
    'There is no channel.',
  );
  const beside = api.isReadOnly ? [] : [applications.element, ...Object.keys(KINDS).map(create)];
  return {
    element: element('div', {}, heading('Channels', ...beside), table.element, editor.element),
    refresh: async () => {
      const [channels, all] = await Promise.all([api.get('/v1/cluster/channels'), api.applications()]);
      found = all;
      applications.show(all.map(named));
      table.show(channels, channelKey);
    },
  };
}

const CHANGES = {
  /** Its programs are replaced: the API does not tell what is in them. */
  scheduledChannels: async (api, editor, row) => {
    const { fallbackProgram, programs } = await api.get(channelPath(row));
    const names = programs.map(({ name, scheduled }) => `"${name}" from ${scheduled}`).join(', ') || 'none';
    const items = fallbackProgram?.items ?? [];
    editor.edit(
      `Change ${row.name}`,
      `What you leave out stays as it is. "programs" replaces all programs and needs their items. There are now: ${names}.`,
      { fallbackProgram: { items } },
      (text) => api.call('PATCH', channelPath(row) + ASK_PROBLEMS, text),
    );
  },
  /** The API has no other way than to create it anew. */
  multiplexChannels: async (api, editor, row) => {
    const { state: _state, pullingMessage: _message, ...before } = await api.get(channelPath(row));
    const create = (channel) => api.call('POST', `${appPath(row)}/multiplexChannels`, channel);
    editor.edit(
      `Change ${row.name}`,
      'It is deleted and created anew: its viewers are disconnected. If the server does not accept it, it is created as it was.',
      before,
      async (text) => {
        const channel = JSON.parse(text);
        await api.call('DELETE', channelPath(row));
        try {
          return await create(channel);
        } catch (error) {
          await create(before);
          throw error;
        }
      },
    );
  },
};
