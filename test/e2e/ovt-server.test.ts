import { once } from 'node:events';
import { connect } from 'node:net';
import { mock } from 'node:test';
import test from 'ava';
import type { Guard } from '../../src/access/guard.ts';
import { startOf } from '../../src/codecs/h264.ts';
import type { OutputProfileConfig } from '../../src/config/model.ts';
import type { Packet } from '../../src/core/packet.ts';
import { OvtClient } from '../../src/providers/ovt/client.ts';
import { OvtError } from '../../src/protocols/ovt/error.ts';
import { seeded } from '../unit/codecs/vectors.ts';
import { notedSessions, WEBHOOK_SESSION } from '../support/access/access.ts';
import { goLive } from '../support/server/live.ts';
import { networks, playOvt, silent, startOvt, type OvtSetup } from '../support/ovt/ovt.ts';
import { audioTrack, videoPackets, videoTrack } from '../support/media/packets.ts';
import { rawOvt } from '../support/ovt/raw-ovt.ts';
import { until } from '../support/time/until.ts';

type Start = Awaited<ReturnType<typeof startOvt>>;

async function start(t: { teardown(undo: () => unknown): void }, setup: OvtSetup = {}): Promise<Start> {
  const ovt = await startOvt(setup);
  t.teardown(() => ovt.close());
  return ovt;
}

const refusal = async (ovt: Start, path: string): Promise<string> => {
  try {
    (await OvtClient.connect(ovt.url(path), { log: silent })).close();
    return 'none';
  } catch (error) {
    if (!(error instanceof OvtError)) throw error;
    return `${error.code}: ${error.message.replace(/^the origin refused \(\d+\): /, '')}`;
  }
};

/** With tracks `hd`, `sd` and `sound`. */
const PROFILE = {
  name: 'p',
  outputStreamName: '${OriginStreamName}',
  tracksets: [
    { name: 'low', strict: false, videos: [{ name: 'sd', indexHint: -1 }], audios: [{ name: 'sound', indexHint: 0 }] },
    {
      name: 'gone',
      strict: true,
      videos: [
        { name: 'sd', indexHint: -1 },
        { name: 'uhd', indexHint: -1 },
      ],
      audios: [],
    },
  ],
} as unknown as OutputProfileConfig;
const HD = videoTrack({ id: 0, name: 'hd' });
const TRACKS = [HD, videoTrack({ id: 1, name: 'sd' }), audioTrack({ id: 2, name: 'sound' })];
const KEY_FRAME: Packet = {
  track: HD,
  dts: 0,
  pts: 0,
  duration: 0,
  key: true,
  data: Buffer.of(0, 0, 0, 2, 0x65, 0x88),
};

test.serial('a request for what is not there is rejected with the reason', async (t) => {
  const ovt = await start(t);
  t.is(await refusal(ovt, 'app/none'), '404: There is no such stream (#default#app/none)');
  t.is(await refusal(ovt, 'other/none'), '404: There is no such stream (#default#other/none)');
  const edge = await rawOvt(t, ovt.server.port);
  t.like(await edge.ask('describe', 'ovt://elsewhere/app/talk'), {
    code: 404,
    message: 'There is no such stream (elsewhere/talk)',
  });
  t.like(await edge.ask('describe', 'rtmp://127.0.0.1/app/talk'), { code: 404 });
});

test.serial('requests that are none are answered, and the connection goes on', async (t) => {
  const ovt = await start(t);
  goLive(ovt.registry, 'app', 'talk');
  const edge = await rawOvt(t, ovt.server.port);
  const target = ovt.url('app/talk');
  t.deepEqual(await edge.send('{'), { id: 0, application: 'unknown', code: 500, message: 'Server Internals Error' });
  for (const wrong of [
    {},
    { id: 7 },
    { id: 7, application: 'describe' },
    { id: 7, application: 'describe', target: 1 },
    { id: 7, application: 'constructor', target },
    { id: 'a', application: 'describe', target },
    { id: 7, application: 'dance', target },
  ])
    t.like(await edge.send(wrong), { id: wrong.id === 7 ? 7 : 0, application: 'unknown', code: 404 });
  t.like(await edge.ask('describe', target), { code: 200 });
  t.like(await edge.ask('stop', target), { code: 200, application: 'stop' });
  await until('the end', () => edge.closed);
});

test.serial('a request for an OVT stream that is starting is answered when it has started', async (t) => {
  const ovt = await start(t);
  const application = ovt.registry.vhost('default').application('app');
  const input = application.publish('late', { type: 'Rtmp', kind: 'rtmp' }, { replace: false, maxConnections: 0 });
  const edge = await rawOvt(t, ovt.server.port);
  const described = edge.ask('describe', ovt.url('app/late'));
  await until('it is held', () => ovt.access.held === 1);
  const output = application.addOutput(input, 'late');
  output.setTracks(TRACKS);
  application.announce(output);
  t.like(await described, { code: 200 });
});

test.serial('a stream that is not here is looked for', async (t) => {
  const asked: string[] = [];
  const ovt = await start(t, {
    find: async (application, name, query) => {
      asked.push(`${name} ${query}`);
      return name === 'far' ? goLive(ovt.registry, application.name, name) : undefined;
    },
  });
  t.is(await refusal(ovt, 'app/far?a=1'), 'none');
  t.is(await refusal(ovt, 'app/further'), '404: There is no such stream (#default#app/further)');
  t.deepEqual(asked, ['far a=1', 'further ']);
});

test.serial('a trackset has its tracks alone', async (t) => {
  const ovt = await start(t, { outputProfile: [PROFILE] });
  const output = goLive(ovt.registry, 'app', 'talk', TRACKS);
  const { recorder } = await playOvt(ovt.url('app/talk/low'));
  for (const track of TRACKS) output.write({ ...KEY_FRAME, track });
  await until('what is of the set', () => recorder.packets.length === 2);
  t.deepEqual(
    recorder.told.map(({ tracks, playlists }) => [tracks.map(({ name }) => name), playlists.length]),
    [[['sd', 'sound'], 0]],
  );
  t.deepEqual(
    recorder.packets.map(({ track }) => track.name),
    ['sd', 'sound'],
  );
  t.is(await refusal(ovt, 'app/talk/none'), '404: There is no such trackset (none)');
  t.is(await refusal(ovt, 'app/talk/gone'), '404: There is no such trackset (gone)');
  const { recorder: whole } = await playOvt(ovt.url('app/talk'));
  for (const track of TRACKS) output.write({ ...KEY_FRAME, track });
  await until('what is of all tracks', () => whole.packets.length === TRACKS.length);
  t.deepEqual(
    whole.told.map(({ tracks, playlists }) => [tracks.filter(({ type }) => type !== 'data').length, playlists.length]),
    [[3, 2]],
  );
});

test.serial(
  'only clients of some networks, up to a limit, and none that access control rejects, use OVT',
  async (t) => {
    const closed = await start(t, { networks: networks(['10.0.0.0', 8]) });
    goLive(closed.registry, 'app', 'talk');
    t.regex(await refusal(closed, 'app/talk'), /^undefined: /);
    await closed.close();
    t.true(closed.lines.some(({ msg }) => /none of the networks/.test(String(msg))));
    const guarded = await start(t, { signedPolicy: { enables: { providers: '', publishers: 'ovt' } } as never });
    goLive(guarded.registry, 'app', 'talk');
    t.regex(await refusal(guarded, 'app/talk'), /^401: /);
    const off = await start(t, { publishers: {} });
    goLive(off.registry, 'app', 'talk');
    t.regex(await refusal(off, 'app/talk'), /^404: /);
    const narrow = await start(t, { publishers: { ovt: { maxConnection: 1 } as never } });
    goLive(narrow.registry, 'app', 'talk');
    const { client } = await playOvt(narrow.url('app/talk'));
    await t.throwsAsync(playOvt(narrow.url('app/talk')), {
      message: /\(503\): Too many connections: at most 1 are allowed/,
    });
    client.close();
    await until('there is room', async () =>
      playOvt(narrow.url('app/talk')).then(
        () => true,
        () => false,
      ),
    );
  },
);

test.serial('an OVT reader that is too slow goes on at a key frame, and holds up no other', async (t) => {
  const ovt = await start(t);
  const track = videoTrack();
  const output = goLive(ovt.registry, 'app', 'talk', [track]);
  const slow = await rawOvt(t, ovt.server.port);
  t.is((await slow.ask('play', ovt.url('app/talk'))).code, 200);
  const { recorder } = await playOvt(ovt.url('app/talk'));
  slow.socket.pause();
  const unit = (key: boolean, number: number): Buffer => {
    const data = Buffer.alloc(100_000, number);
    data.writeUInt32BE(data.length - 4);
    data[4] = key ? 0x65 : 0x41;
    return data;
  };
  const frames = videoPackets(track, { to: 10 });
  for (const [at, frame] of frames.entries()) {
    output.write({ ...frame, data: unit(frame.key !== false, at) });
    if (at % 20 === 0) await until('the quick one keeps up', () => recorder.packets.length === at + 1);
  }
  slow.socket.resume();
  const last = frames.at(-1)?.dts;
  await until('the slow one catches up', () => slow.frames.at(-1)?.dts === last);
  t.true(slow.frames.length < frames.length, `${slow.frames.length} frames`);
  const jumps = slow.frames.filter(({ dts }, i) => i > 0 && dts - (slow.frames[i - 1]?.dts ?? 0) > 3000);
  t.true(jumps.length > 0 && jumps.every(({ key }) => key));
  t.is(startOf(unit(true, 1)), 'idr');
});

test.serial('a client that sends anything else costs no other anything', async (t) => {
  const ovt = await start(t);
  const output = goLive(ovt.registry, 'app', 'talk', TRACKS);
  const { recorder } = await playOvt(ovt.url('app/talk'));
  const random = seeded(20_261_201);
  const upTo = (limit: number) => Math.floor(random() * limit);
  for (let round = 0; round < 60; round++) {
    const socket = connect(ovt.server.port, '127.0.0.1');
    socket.on('error', () => {});
    const noise = Buffer.from(Array.from({ length: upTo(3000) }, () => upTo(256)));
    if (round % 3 > 0 && noise.length > 18) {
      noise[0] = 0x60;
      noise[1] = [10, 20, 30][upTo(3)] as number;
      noise.writeUInt16BE(round % 3 === 1 ? noise.length - 18 : upTo(40_000), 16);
    }
    socket.write(noise);
    if (round % 2 === 0) await once(socket, 'connect');
    if (round % 5 === 0) socket.end();
    t.teardown(() => socket.destroy());
    if (round % 4 === 0) setImmediate(() => socket.destroy());
  }
  const request = await rawOvt(t, ovt.server.port);
  for (let i = 0; i < 300; i++) void request.ask('describe', ovt.url('app/talk')).catch(() => undefined);
  await until('who asks for too much is gone', () => request.closed);
  for (const track of TRACKS) output.write({ ...KEY_FRAME, track });
  await until('the player plays', () => recorder.packets.length === TRACKS.length);
  t.false(
    ovt.lines.some(({ level }) => Number(level) >= 50),
    JSON.stringify(ovt.lines.filter(({ level }) => Number(level) >= 50)),
  );
});

test.serial('DelayBufferTimeMs: everything is sent later', async (t) => {
  const ovt = await start(t, { publishers: { ovt: { maxConnection: 0, delayBufferTimeMs: 300 } as never } });
  const output = goLive(ovt.registry, 'app', 'talk', [HD]);
  const { recorder } = await playOvt(ovt.url('app/talk'));
  const standing = performance.now();
  const clock = mock.method(performance, 'now', () => standing);
  t.teardown(() => clock.mock.restore());
  output.write(KEY_FRAME);
  // the same server answers meanwhile
  await playOvt(ovt.url('app/talk'));
  t.deepEqual(recorder.packets, []);
  clock.mock.restore();
  await until('the frame', () => recorder.packets.length === 1);
  t.deepEqual(recorder.packets[0]?.data, KEY_FRAME.data);
});

test.serial('a player whose time is over is notified, and so is the guard, of each end once', async (t) => {
  const ends: string[] = [];
  const guard: Guard = () => async () => ({ until: Date.now() + 1500, session: WEBHOOK_SESSION });
  const ovt = await start(t, { access: { guards: [guard], webhookSessions: notedSessions(ends) } });
  const output = goLive(ovt.registry, 'app', 'talk');
  const { recorder } = await playOvt(ovt.url('app/talk'));
  t.deepEqual(ends, ['the stream is described']);
  await until('it has ended', () => recorder.ended !== undefined);
  t.is(recorder.ended?.reason, 'the origin ended the stream: its allowed time is over');
  t.is(output.sessions.size, 0);
  t.deepEqual(ends, ['the stream is described', 'its allowed time is over']);
});
