import { element } from '../common.js';
import { appPath } from './api.js';
import { Editor } from './editor.js';
import { changeButton, Choice, heading, Table } from './parts.js';

/** @import { ChannelRow, MultiplexChannel, ScheduledChannel } from '../answers.ts' */
/** @import { Api, AppName } from './api.js' */
/** @import { ChangeAnswer } from './editor.js' */
/** @import { View } from './parts.js' */

/** @typedef {ChannelRow['kind']} Kind */

/** @type {Readonly<Record<Kind, string>>} */
const KINDS = { scheduledChannels: 'Scheduled', multiplexChannels: 'Multiplex' };

/** @param {ChannelRow} row */
const channelPath = ({ vhost, app, kind, name }) => `${appPath({ vhost, app })}/${kind}/${encodeURIComponent(name)}`;
/** @param {ChannelRow} row */
const channelKey = ({ vhost, app, kind, name }) => JSON.stringify([vhost, app, kind, name]);

/** @param {ChannelRow} row */
function stateOf(row) {
  if (row.channel === undefined) return 'unknown';
  return row.kind === 'multiplexChannels' ? row.channel.state : row.channel.currentProgram.state;
}

/**
 * Present item or sources of a channel, or the reason why it waits.
 * @param {ChannelRow} row
 */
function playing(row) {
  if (row.kind === 'multiplexChannels') {
    const sources = row.channel?.sourceStreams.map(({ url }) => url).join(', ') ?? '';
    return row.channel?.pullingMessage ?? sources;
  }
  const { name = '', currentItem } = row.channel?.currentProgram ?? {};
  if (currentItem === undefined) return name;
  const { url, currentPosition } = currentItem;
  return `${name}: ${url} at ${Math.round(currentPosition / 1000)} s`;
}

/** Asks for the problems of the schedule in the answer. */
const ASK_PROBLEMS = '?problems=true';

/**
 * An example of each kind of channel, with files and streams that the application may have.
 * @type {Readonly<Record<Kind, (application: AppName) => object>>}
 */
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

/**
 * The channels of all applications.
 * @param {Api} api
 * @returns {View}
 */
export function channelsView(api) {
  const editor = new Editor();
  const applications = new Choice('application', 'Application');
  /** @type {AppName[]} */
  let found = [];
  /** @param {AppName} application */
  const named = ({ vhost, app }) => `${vhost} / ${app}`;
  /** @param {Kind} kind */
  const create = (kind) =>
    changeButton(api, `New ${KINDS[kind].toLowerCase()} channel`, async () => {
      const application = found.find((one) => named(one) === applications.chosen);
      if (application === undefined) throw new Error('Create an application first');
      const title = `New ${KINDS[kind].toLowerCase()} channel of ${named(application)}`;
      editor.edit(title, 'It begins as soon as it is created.', EXAMPLES[kind](application), (text) =>
        api.call('POST', `${appPath(application)}/${kind}${kind === 'scheduledChannels' ? ASK_PROBLEMS : ''}`, text),
      );
    });
  /** @type {Table<ChannelRow>} */
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
  const beside = api.isReadOnly ? [] : [applications.element, create('scheduledChannels'), create('multiplexChannels')];
  return {
    element: element('div', {}, heading('Channels', ...beside), table.element, editor.element),
    refresh: async () => {
      /** @type {Promise<ChannelRow[]>} */
      const listed = api.get('/v1/cluster/channels');
      const [channels, all] = await Promise.all([listed, api.applications()]);
      found = all;
      applications.show(all.map(named));
      table.show(channels, channelKey);
    },
  };
}

/** @type {Readonly<Record<Kind, (api: Api, editor: Editor, row: ChannelRow) => Promise<void>>>} */
const CHANGES = {
  // programs are replaced as a whole: the API does not show their items
  scheduledChannels: async (api, editor, row) => {
    /** @type {ScheduledChannel} */
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
  // the API cannot change one: it is deleted and created anew
  multiplexChannels: async (api, editor, row) => {
    /** @type {MultiplexChannel} */
    const { state: _state, pullingMessage: _message, ...before } = await api.get(channelPath(row));
    /**
     * @param {object} channel
     * @returns {Promise<ChangeAnswer>}
     */
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
