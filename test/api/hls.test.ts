import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import Fastify from 'fastify';
import { pino } from 'pino';
import { apiRoutes } from '../../src/api/app.ts';
import { HLS } from '../../src/publishers/hls/ts/index.ts';
import { LLHLS } from '../../src/publishers/hls/ll/index.ts';
import { PlaylistPublisher } from '../../src/publishers/hls/publisher.ts';
import { aloneWith } from '../support/cluster/alone.ts';
import { apiOptions, caller, createVhost, sampleRegistry } from '../support/api/api.ts';
import { feeder } from '../support/hls/llhls-nodes.ts';
import { audioTrack, videoTrack } from '../support/media/packets.ts';

const APP = '/v1/vhosts/hls/apps/app';
const TRACKS = [videoTrack(), audioTrack()];

/** The API of a node with a stream `live`, of an application `app` with both kinds of HLS; `bare` has none. */
async function open(t: ExecutionContext) {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-api-dump-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const registry = sampleRegistry();
  const publishers = { llhls: { segmentDuration: 2 }, hls: { segmentDuration: 2 } };
  createVhost(registry, {
    name: 'hls',
    host: { names: ['*'] },
    applications: [
      { name: 'app', type: 'live', publishers },
      { name: 'bare', type: 'live' },
    ],
  });
  const log = pino({ level: 'silent' });
  const served = { registry, ...(await aloneWith(registry, { log })), log, tokenKeys: [Buffer.alloc(32)] };
  const playlists = [new PlaylistPublisher(LLHLS, served), new PlaylistPublisher(HLS, served)];
  const app = Fastify();
  await app.register(apiRoutes({ ...(await apiOptions({}, registry)), playlists }));
  t.teardown(async () => {
    registry.close('the test is over');
    for (const publisher of playlists) await publisher.close();
    await app.close();
  });
  const call = caller(app);
  const publish = (name: string, output: string) => {
    const application = registry.vhost('hls').application(name);
    const input = application.publish('live', { type: 'Rtmp', kind: 'rtmp' }, { replace: false, maxConnections: 0 });
    input.setTracks(TRACKS);
    const made = application.addOutput(input, output);
    made.setTracks(TRACKS);
    application.announce(made);
    return { input, output: made };
  };
  const { output } = publish('app', 'live_out');
  feeder(output)(7);
  publish('bare', 'live_out');
  const act = (action: string, body?: unknown, stream = `${APP}/streams/live`) =>
    call('POST', `${stream}:${action}`, {}, body === undefined ? undefined : JSON.stringify(body));
  const concluded = () =>
    playlists.map(
      (publisher) => publisher.live(registry.vhost('hls').application('app'), 'live_out')?.stream.package.concluded,
    );
  return {
    call,
    act,
    folder,
    registry,
    concluded,
    asked: { outputStreamName: 'live_out', id: 'd1', outputPath: `${folder}/vod` },
  };
}

const error = (statusCode: number, text: string) => ({ statusCode, message: `[HTTP] ${text} (${statusCode})` });
const ok = (response: unknown) => ({ statusCode: 200, message: 'OK', response });

test('a dump is started, listed and stopped', async (t) => {
  const { act, asked, folder } = await open(t);
  const whole = { ...asked, playlist: ['llhls.m3u8'], infoFile: `${folder}/info.xml`, userData: 'mine' };
  t.deepEqual((await act('hlsDumps', { outputStreamName: 'live_out' })).body, ok([]));
  t.deepEqual((await act('startHlsDump', whole)).body, ok(['d1']));
  t.deepEqual(
    (
      await act('startHlsDump', {
        ...asked,
        id: 'd0',
        outputPath: `${folder}/\${StreamName}`,
        infoFile: `${folder}/\${AppName}.xml`,
      })
    ).body,
    ok(['d0']),
  );
  const first = {
    id: 'd0',
    outputStreamName: 'live_out',
    outputPath: `${folder}/live_out`,
    infoFile: `${folder}/app.xml`,
    enabled: true,
    state: 'running',
  };
  const second = { ...whole, enabled: true, state: 'running' };
  t.deepEqual((await act('hlsDumps', { outputStreamName: 'live_out' })).body, ok([first, second]));
  t.deepEqual((await act('hlsDumps', { outputStreamName: 'live_out', id: 'd1' })).body, ok([second]));
  t.deepEqual((await act('hlsDumps', { outputStreamName: 'live_out', id: 'none' })).body, ok([]));
  t.true((await readdir(`${folder}/vod`)).includes('llhls.m3u8'));
  t.deepEqual((await act('stopHlsDump', { outputStreamName: 'live_out', id: 'd1' })).body, ok(['d1']));
  t.regex(await readFile(`${folder}/info.xml`, 'utf8'), /<Status>Completed</);
  t.deepEqual((await act('stopHlsDump', { outputStreamName: 'live_out' })).body, ok(['d0']));
  t.deepEqual((await act('stopHlsDump', { outputStreamName: 'live_out' })).body, ok([]));
  t.deepEqual((await act('hlsDumps', { outputStreamName: 'live_out' })).body, ok([]));
});

test('a dump that is not possible is rejected by the API', async (t) => {
  const { act, asked, folder } = await open(t);
  const required = 'id, outputStreamName and outputPath are required';
  await writeFile(`${folder}/info.xml`, 'mine');
  const rows: readonly (readonly [body: unknown, status: number, text: string])[] = [
    [[], 400, 'Request body must be an object'],
    [{}, 400, required],
    [{ ...asked, id: undefined }, 400, required],
    [{ ...asked, outputStreamName: '' }, 400, required],
    [{ ...asked, outputPath: undefined }, 400, required],
    [{ ...asked, outputPath: 5 }, 400, '[outputPath] must be a string'],
    [{ ...asked, id: 5 }, 400, '[id] must be a string'],
    [{ ...asked, userData: {} }, 400, '[userData] must be a string'],
    [{ ...asked, playlist: 'llhls' }, 400, '[playlist] must be an array of at most 64 file names'],
    [{ ...asked, outputPath: 'vod' }, 400, 'the path of a dump has to be absolute: vod'],
    [{ ...asked, outputPath: '/a/../b' }, 400, 'the path of a dump must not contain "..": /a/../b'],
    [{ ...asked, outputStreamName: 'none' }, 404, 'Could not find output stream: [hls/app/none]'],
    [
      { ...asked, playlist: ['none.m3u8'] },
      500,
      'Could not start dump: [hls/app/live_out] (Could not dump master playlist)',
    ],
    [
      { ...asked, infoFile: `${folder}/info.xml` },
      500,
      'Could not start dump: [hls/app/live_out] (Duplicate info file)',
    ],
  ];
  for (const [body, status, text] of rows) {
    const answer = await act('startHlsDump', body);
    t.is(answer.status, status, text);
    t.deepEqual(answer.body, error(status, text));
  }
  t.is(await readFile(`${folder}/info.xml`, 'utf8'), 'mine');
  t.deepEqual((await act('hlsDumps', asked)).body, ok([]));
  t.is((await act('startHlsDump', asked)).status, 200);
  t.deepEqual(
    (await act('startHlsDump', { ...asked, outputPath: `${folder}/other` })).body,
    error(500, 'Could not start dump: [hls/app/live_out] (Duplicate ID)'),
  );
});

test('dumps and conclusions of streams that do not exist', async (t) => {
  const { act, asked, call } = await open(t);
  for (const action of ['startHlsDump', 'stopHlsDump', 'hlsDumps', 'concludeHlsLive']) {
    t.deepEqual(
      (await act(action, asked, `${APP}/streams/none`)).body,
      error(404, 'Could not find the stream: [hls/#hls#app/none]'),
    );
    t.deepEqual(
      (await act(action, asked, '/v1/vhosts/none/apps/app/streams/live')).body,
      error(404, 'Could not find the virtual host: [none]'),
    );
    t.deepEqual(
      (await act(action, asked, '/v1/vhosts/hls/apps/none/streams/live')).body,
      error(404, 'Could not find the application: [hls/none]'),
    );
    t.is((await call('GET', `${APP}/streams/live:${action}`)).status, 405);
  }
  for (const action of ['stopHlsDump', 'hlsDumps']) {
    t.deepEqual((await act(action, {})).body, error(400, 'outputStreamName is required'));
    t.deepEqual((await act(action, [])).body, error(400, 'Request body must be an object'));
    t.deepEqual(
      (await act(action, { outputStreamName: 'none' })).body,
      error(404, 'Could not find output stream: [hls/app/none]'),
    );
  }
  t.deepEqual(
    (await act('stopHlsDump', { outputStreamName: 'live_out', id: 'none' })).body,
    error(404, 'Could not stop dump: [hls/app/live_out] (Could not find dump info)'),
  );
  const bare = '/v1/vhosts/hls/apps/bare/streams/live';
  for (const action of ['startHlsDump', 'stopHlsDump', 'hlsDumps'])
    t.deepEqual(
      (await act(action, asked, bare)).body,
      error(404, 'Could not find LLHLS stream: [hls/bare/live_out]'),
      action,
    );
  t.deepEqual((await act('concludeHlsLive', {}, bare)).body, error(404, 'Could not find publisher: [hls/bare]'));
});

test('playlists are concluded, of all kinds of HLS', async (t) => {
  const { act, registry, concluded } = await open(t);
  t.deepEqual((await act('concludeHlsLive', [])).body, error(400, 'Request body must be an object'));
  t.deepEqual((await act('concludeHlsLive', { urgent: 1 })).body, error(400, '[urgent] must be a boolean'));
  t.deepEqual((await act('concludeHlsLive')).body, { statusCode: 200, message: 'OK' });
  t.deepEqual(concluded(), [false, false], 'the growing segments have not ended');
  t.deepEqual((await act('concludeHlsLive', { urgent: true })).body, { statusCode: 200, message: 'OK' });
  t.deepEqual(concluded(), [true, true]);
  t.false(registry.vhost('hls').application('app').stream('live')?.closed, 'the stream goes on');
});
