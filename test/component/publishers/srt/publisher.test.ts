import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { AccessOptions } from '../../../../src/access/access.ts';
import type { Guard } from '../../../../src/access/guard.ts';
import type { ApplicationConfig } from '../../../../src/config/model.ts';
import type { Packet } from '../../../../src/core/packet.ts';
import type { Playlist } from '../../../../src/core/playlist.ts';
import { Registry } from '../../../../src/core/registry.ts';
import { SrtPublisher } from '../../../../src/publishers/srt/index.ts';
import { notedSessions, WEBHOOK_SESSION } from '../../../support/access/access.ts';
import { aloneWith } from '../../../support/cluster/alone.ts';
import { codedPackets, tracksOf } from '../../../support/media/coded-packets.ts';
import { addVhost, goLive } from '../../../support/server/live.ts';
import { freePorts } from '../../../support/network/ports.ts';
import { SrtCaller } from '../../../support/srt/caller.ts';
import { until } from '../../../support/time/until.ts';

const OPTIONS = {
  webrtcAutoAbr: true,
  webrtcAudioOnlyFallback: false,
  hlsChunklistPathDepth: -1,
  enableTsPackaging: false,
};

/** A live stream `talk` of a test pattern and a tone, and a port to play it from. */
async function start(
  t: ExecutionContext,
  {
    options = [],
    playlists = [],
    access: admitting,
  }: {
    access?: Partial<AccessOptions>;
    options?: readonly { key: string; value: string }[];
    playlists?: readonly Playlist[];
  } = {},
) {
  const registry = new Registry();
  addVhost(registry, { publishers: { srt: { maxConnection: 0 } } as Partial<ApplicationConfig['publishers']> });
  const [port = 0] = freePorts(1);
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const { cluster, access } = await aloneWith(registry, { log, ...admitting });
  const publisher = await SrtPublisher.listen({
    registry,
    access,
    ip: ['127.0.0.1'],
    log,
    bind: { port: [{ first: port, last: port }], streamMap: [], options },
  });
  t.teardown(async () => {
    registry.close('the test is over');
    await publisher.close();
    await cluster.close();
  });
  const packets = codedPackets({ video: { codec: 'H264', gop: 10 }, audio: 'AAC', seconds: 2 });
  const output = goLive(registry, 'app', 'talk', tracksOf(packets));
  for (const playlist of playlists) output.addPlaylist(playlist);
  registry.vhosts.get('default')?.applications.get('app')?.announce(output);
  const watch = async (streamId = 'default/app/talk') => {
    const before = output.sessions.size;
    const call = await new SrtCaller(t).call(port, { streamId });
    if (call.refused === 0) await until('it watches', () => output.sessions.size > before);
    return call;
  };
  return { port, output, packets, watch, lines };
}

const sound = (packets: readonly Packet[]): Packet[] => packets.filter(({ track }) => track.type === 'audio');

test.serial('a viewer gets all of a stream that ends', async (t) => {
  const { output, packets, watch } = await start(t, { options: [{ key: 'SRTO_LATENCY', value: '400' }] });
  const call = await watch();
  for (const packet of packets) output.write(packet);
  const [session] = output.sessions.values();
  output.input.close('the publisher left');
  t.is(output.sessions.size, 0);
  let got = 0;
  await until('the end', async () => {
    const bytes = await call.receive();
    if (bytes > 0) got += bytes;
    return bytes < 0;
  });
  t.true(got > 0);
  t.is(got, session?.out.totalBytes ?? 0);
});

for (const [key, value, packets] of [
  ['SRTO_PAYLOADSIZE', '1000', 5],
  ['SRTO_MSS', '700', 3],
] as const) {
  test.serial(`messages are as long as ${key} of ${value} lets them be`, async (t) => {
    const stream = await start(t, { options: [{ key, value }] });
    const call = await stream.watch();
    for (const packet of stream.packets) stream.output.write(packet);
    const [session] = stream.output.sessions.values();
    let got = 0;
    await until('all is there', async () => (got += await call.receive()) === session?.out.totalBytes);
    t.is(await call.longest(), packets * 188);
  });
}

test.serial('a viewer whose messages have no room for a transport packet is rejected with the reason', async (t) => {
  const { port, lines } = await start(t, { options: [{ key: 'SRTO_MSS', value: '200' }] });
  const call = await new SrtCaller(t).call(port, { streamId: 'default/app/talk' });
  t.is(call.refused, 0);
  await until('it is ended', async () => !(await call.connected()));
  t.true(
    lines.some((line) =>
      /"level":40.*SRT viewer closed: it does not accept messages of more than 136 bytes/.test(line),
    ),
    lines.join(''),
  );
});

test.serial('a playlist `master` that is not for MPEG-TS does not stand in the way of the default', async (t) => {
  const { watch } = await start(t, {
    playlists: [{ name: 'abr', fileName: 'master', options: OPTIONS, renditions: [{}] }],
  });
  t.is((await watch()).refused, 0);
  t.is((await watch('default/app/talk/master')).refused, 1404);
});

test.serial('sound comes when the picture that was waited for is gone', async (t) => {
  const { output, packets, watch } = await start(t);
  const call = await watch();
  const [session] = output.sessions.values();
  const sounds = sound(packets);
  for (const packet of sounds.slice(0, 5)) output.write(packet);
  t.is(session?.out.totalBytes, 0, 'it waits for a picture');
  output.setTracks(output.tracks.filter(({ type }) => type === 'audio'));
  for (const packet of sounds.slice(5)) output.write(packet);
  const sent = session?.out.totalBytes ?? 0;
  t.true(sent > 0);
  let got = 0;
  await until('it comes', async () => (got += await call.receive()) === sent);
});

test.serial('a viewer whose time is over is disconnected, and its guard hears of that once', async (t) => {
  const ends: string[] = [];
  const guard: Guard = () => async () => ({ until: Date.now() + 4000, session: WEBHOOK_SESSION });
  const { output, watch } = await start(t, { access: { guards: [guard], webhookSessions: notedSessions(ends) } });
  const call = await watch();
  await until('it is disconnected', async () => !(await call.connected()));
  t.is(output.sessions.size, 0);
  t.deepEqual(ends, ['its allowed time is over']);
});
