import { ask, ended, same, WITH_TEMPLATE, type Call, type Turn } from './calls.ts';

const TEMPLATE = { name: '*', type: 'live', providers: { rtmp: {} }, publishers: { llhls: {} } };
const hostNames = (vhost: string): string[] => [`${vhost}.example.com`];
const profile = (name: string) => ({
  name,
  outputStreamName: `\${OriginStreamName}_${name}`,
  encodes: { videos: [{ name: 'v', bypass: true }] },
});

const ofVhost = ({ vhost }: Turn): string => `/v1/vhosts/${vhost}`;
const ofApp = (turn: Turn): string => `${ofVhost(turn)}/apps/${turn.app}`;

/** What a change of something is answered: it is not there, may not be changed, or is. */
function changed({ state, vhost }: Turn, isThere: boolean): number {
  const present = state.vhosts.get(vhost);
  if (present === undefined) return 404;
  if (present.isStatic) return 403;
  return isThere ? 200 : 404;
}

const createVhost: Call = async (turn) => {
  const { state, vhost } = turn;
  const status = state.vhosts.has(vhost) ? 409 : 200;
  const hasTemplate = vhost === WITH_TEMPLATE;
  const body = { name: vhost, host: { names: hostNames(vhost) }, ...(hasTemplate && { applications: [TEMPLATE] }) };
  await ask(turn, 'POST', '/v1/vhosts', status, [body]);
  if (status === 200) state.vhosts.set(vhost, { hasTemplate, isStatic: false, apps: new Map() });
  return `create virtual host ${vhost}`;
};

const deleteVhost: Call = async (turn) => {
  const { state, vhost } = turn;
  const status = changed(turn, true);
  await ask(turn, 'DELETE', ofVhost(turn), status);
  if (status === 200) {
    const streams = state.streams(vhost);
    state.vhosts.delete(vhost);
    await ended(streams);
  }
  return `delete virtual host ${vhost}`;
};

const listVhosts: Call = async (turn) => {
  const { response } = await ask<string[]>(turn, 'GET', '/v1/vhosts', 200);
  same('virtual hosts', response, turn.state.vhosts.keys());
  return 'list virtual hosts';
};

const createApp: Call = async (turn) => {
  const { state, vhost, app } = turn;
  const present = state.vhosts.get(vhost);
  const status = present === undefined ? 404 : present.isStatic ? 403 : present.apps.has(app) ? 409 : 200;
  await ask(turn, 'POST', `${ofVhost(turn)}/apps`, status, [{ name: app, type: 'live' }]);
  if (status === 200) present?.apps.set(app, { dynamic: false, profiles: new Set(['default']), streams: new Map() });
  return `create application ${vhost}/${app}`;
};

const deleteApp: Call = async (turn) => {
  const { state, vhost, app } = turn;
  const status = changed(turn, state.app(vhost, app) !== undefined);
  await ask(turn, 'DELETE', ofApp(turn), status);
  if (status === 200) {
    const streams = state.streams(vhost, app);
    state.vhosts.get(vhost)?.apps.delete(app);
    await ended(streams);
  }
  return `delete application ${vhost}/${app}`;
};

/** Ends every stream; one made on demand is an ordinary one from then on. */
async function restarted({ state, vhost, app }: Turn): Promise<void> {
  const present = state.app(vhost, app);
  const streams = state.streams(vhost, app);
  if (present !== undefined) present.dynamic = false;
  present?.streams.clear();
  await ended(streams);
}

/** Another one for each change. */
let segmentCount = 3;

const patchApp: Call = async (turn) => {
  const status = changed(turn, turn.state.app(turn.vhost, turn.app) !== undefined);
  await ask(turn, 'PATCH', ofApp(turn), status, { publishers: { llhls: { segmentCount: ++segmentCount } } });
  if (status === 200) await restarted(turn);
  return `change application ${turn.vhost}/${turn.app}`;
};

const patchNothing: Call = async (turn) => {
  const status = changed(turn, turn.state.app(turn.vhost, turn.app) !== undefined);
  await ask(turn, 'PATCH', ofApp(turn), status, { type: 'LIVE', providers: {} });
  return `change nothing of application ${turn.vhost}/${turn.app}`;
};

const showApp: Call = async (turn) => {
  const present = turn.state.app(turn.vhost, turn.app);
  const { response } = await ask<{ dynamic: boolean }>(turn, 'GET', ofApp(turn), present === undefined ? 404 : 200);
  if (present !== undefined && response.dynamic !== present.dynamic)
    throw new Error(`${ofApp(turn)}: dynamic is ${response.dynamic}`);
  return `show application ${turn.vhost}/${turn.app}`;
};

const listApps: Call = async (turn) => {
  const present = turn.state.vhosts.get(turn.vhost);
  const { response } = await ask<string[]>(turn, 'GET', `${ofVhost(turn)}/apps`, present === undefined ? 404 : 200);
  if (present !== undefined) same(`applications of ${turn.vhost}`, response, present.apps.keys());
  return `list applications of ${turn.vhost}`;
};

const createProfile: Call = async (turn) => {
  const { state, vhost, app, stream: name } = turn;
  const present = state.app(vhost, app);
  const may = changed(turn, present !== undefined);
  const status = may === 200 && present?.profiles.has(name) ? 409 : may;
  await ask(turn, 'POST', `${ofApp(turn)}/outputProfiles`, status, [profile(name)]);
  if (status === 200) {
    present?.profiles.add(name);
    await restarted(turn);
  }
  return `create profile ${vhost}/${app}/${name}`;
};

const deleteProfile: Call = async (turn) => {
  const { state, vhost, app, stream: name } = turn;
  const profiles = state.app(vhost, app)?.profiles;
  const status = changed(turn, profiles?.has(name) === true);
  await ask(turn, 'DELETE', `${ofApp(turn)}/outputProfiles/${name}`, status);
  if (status === 200) {
    profiles?.delete(name);
    await restarted(turn);
  }
  return `delete profile ${vhost}/${app}/${name}`;
};

const listProfiles: Call = async (turn) => {
  const present = turn.state.app(turn.vhost, turn.app);
  const { response } = await ask<string[]>(
    turn,
    'GET',
    `${ofApp(turn)}/outputProfiles`,
    present === undefined ? 404 : 200,
  );
  if (present !== undefined) same(`profiles of ${ofApp(turn)}`, response, present.profiles);
  return `list profiles of ${turn.vhost}/${turn.app}`;
};

export const CONFIG_CALLS: readonly Call[] = [
  createVhost,
  createVhost,
  createVhost,
  deleteVhost,
  listVhosts,
  createApp,
  createApp,
  createApp,
  deleteApp,
  patchApp,
  patchNothing,
  showApp,
  listApps,
  listApps,
  createProfile,
  deleteProfile,
  listProfiles,
];
