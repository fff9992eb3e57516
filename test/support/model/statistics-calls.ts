import { ask, soon, type Call, type Turn } from './calls.ts';

interface Side {
  readonly connections: Readonly<Record<string, number>>;
}

interface Statistics {
  readonly providers: Side;
  readonly publishers: Side & { readonly totalConnections: number };
}

/** Sources that are counted of something: what the node has itself at once, what others have when they have told. */
async function counts(turn: Turn, below: string, isThere: boolean, wanted: number): Promise<void> {
  const path = `/v2/stats/current${below}`;
  await ask(turn, 'GET', path, isThere ? 200 : 404);
  if (!isThere) return;
  let last = NaN;
  await soon(`${wanted} sources in ${below}`, async () => {
    const { response } = await ask<Statistics>(turn, 'GET', path, 200);
    last = response.providers.connections.rtmp ?? NaN;
    return last === wanted;
  }).catch((error: Error) => {
    throw new Error(`${error.message}: there are ${last}`);
  });
}

const ofVhost: Call = async (turn) => {
  const { state, vhost } = turn;
  await counts(turn, `/vhosts/${vhost}`, state.vhosts.has(vhost), state.streams(vhost).length);
  return `statistics of ${vhost}`;
};

const ofApp: Call = async (turn) => {
  const { state, vhost, app } = turn;
  await counts(
    turn,
    `/vhosts/${vhost}/apps/${app}`,
    state.app(vhost, app) !== undefined,
    state.streams(vhost, app).length,
  );
  return `statistics of ${vhost}/${app}`;
};

const ofStream: Call = async (turn) => {
  const { state, vhost, app, stream } = turn;
  await counts(
    turn,
    `/vhosts/${vhost}/apps/${app}/streams/${stream}`,
    state.stream(vhost, app, stream) !== undefined,
    1,
  );
  return `statistics of ${vhost}/${app}/${stream}`;
};

export const STATISTICS_CALLS: readonly Call[] = [ofVhost, ofApp, ofStream, ofStream];
