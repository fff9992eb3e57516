import test from 'ava';
import type { Packet } from '../../src/core/packet.ts';
import type { OutputStream } from '../../src/core/output-stream.ts';
import { sameFormat, type Track } from '../../src/core/track.ts';
import type { Registry } from '../../src/core/registry.ts';
import type { Relays } from '../../src/relay/relays.ts';
import { aac } from '../support/media/aac.ts';
import { goLive } from '../support/server/live.ts';
import { av1Media, h265, opusMedia, packetsOf, PICTURES } from '../support/ovt/ovt-media.ts';
import { relayNodes } from '../support/ovt/relay-nodes.ts';
import { until } from '../support/time/until.ts';
import { h264, ivf, type Media } from '../support/webrtc/webrtc-media.ts';

function announce(output: OutputStream, registry: Registry): OutputStream {
  registry.vhost('default').application('app').announce(output);
  return output;
}

function record(output: OutputStream): Packet[] {
  const packets: Packet[] = [];
  output.read({ packet: (packet) => void packets.push(packet) });
  return packets;
}

async function opened(
  relays: Relays,
  application: Parameters<Relays['find']>[0],
  name = 'talk',
): Promise<OutputStream> {
  const output = await relays.find(application, name);
  if (output === undefined) throw new Error('not relayed');
  return output;
}

test('every codec passes as it is, with names, languages and playlists', async (t) => {
  const { far, application, relays } = relayNodes(t);
  const given: Media<Track>[] = [
    await h264({ seconds: 0.5 }),
    await aac(440, { language: 'de', characteristics: 'c' }, 0.5),
    await h265(2),
    { ...(await av1Media()) },
    await ivf('VP8', { seconds: 0.5 }),
    await ivf('VP9', { seconds: 0.5 }),
    await opusMedia(),
    PICTURES,
  ];
  const all = given.map((media, id) => ({ ...media, track: { ...media.track, id, name: `track ${id}` } }));
  const source = announce(
    goLive(
      far,
      'app',
      'talk',
      all.map(({ track }) => track),
    ),
    far,
  );
  const output = await opened(relays, application);
  t.true(output.input.isRelay);
  t.is(application.output('talk'), output);
  t.is(application.outputs.size, 0);
  t.deepEqual(output.playlists, source.playlists);
  for (const [i, { track }] of all.entries()) {
    const relayed = output.tracks[i] as Track;
    t.true(sameFormat(relayed, track));
    t.like(relayed, {
      id: track.id,
      name: track.name,
      language: track.language,
      characteristics: track.characteristics,
    });
  }
  const packets = record(output);
  const sent = all.flatMap((media) => packetsOf(media));
  for (const packet of sent) source.write(packet);
  await until('all packets', () => packets.length === sent.length);
  t.true(
    packets.every(
      ({ data, key, track }, i) =>
        data.equals((sent[i] as Packet).data) && key === (sent[i] as Packet).key && output.tracks.includes(track),
    ),
  );
  t.deepEqual(
    [
      source.sessions.size,
      source.counters.publishers.ovt,
      source.counters.out.totalBytes,
      output.input.counters.in.totalBytes,
    ],
    [0, 0, 0, 0],
  );
});

test('events of every kind pass, also of tracks that come with the first of them, with what they belong beside', async (t) => {
  const { far, application, relays } = relayNodes(t);
  const media = await h264({ seconds: 0.5 });
  const source = announce(goLive(far, 'app', 'talk', [media.track]), far);
  const output = await opened(relays, application);
  const packets = record(output);
  const [first, ...others] = packetsOf(media);
  source.write(first as Packet);
  const kinds = (['ID3v2', 'SCTE35', 'CUE', 'AMF'] as const).flatMap((codec) =>
    ([undefined, 'video', 'audio'] as const).map((target) => ({ codec, target })),
  );
  const events = kinds.map(({ codec, target }, i): Packet => ({
    track: {
      id: 1024 + i,
      name: 'Data',
      type: 'data',
      codec,
      timebase: media.track.timebase,
      bypass: true,
      ...(target && { target }),
    },
    dts: i,
    pts: i + 5,
    duration: 0,
    key: true,
    data: Buffer.from(`${codec} ${target}`),
  }));
  source.setTracks([media.track, ...events.map(({ track }) => track)]);
  for (const packet of [...events, ...others]) source.write(packet);
  await until('all packets', () => packets.length === 1 + events.length + others.length);
  const base = (packets[0] as Packet).dts - (first as Packet).dts;
  t.deepEqual(
    packets.slice(1, 1 + events.length).map(({ track, dts, pts, data }) => [track, dts - base, pts - base, data]),
    events.map(({ track, dts, pts, data }) => [track, dts, pts, data]),
  );
});

test('the first relay of a stream begins with its next key frame, the next with what came since; it wakes what waits for viewers', async (t) => {
  const { far, application, relays } = relayNodes(t);
  const media = await h264({ seconds: 2, gop: 15 });
  const source = announce(goLive(far, 'app', 'talk', [media.track]), far);
  let watched = false;
  source.on('viewers', () => (watched = source.watched));
  const packets = packetsOf(media);
  const write = (from: number, to: number): void => packets.slice(from, to).forEach((packet) => source.write(packet));
  const received: Packet[][] = [];
  application.vhost.registry.on('output', (output) => received.push(record(output)));
  const came = (relay: number, from: number, to: number) =>
    until(`frames up to ${to}`, () => received[relay]?.length === to - from).then(() =>
      t.deepEqual(
        received[relay]?.map(({ data }) => data),
        packets.slice(from, to).map(({ data }) => data),
      ),
    );
  write(0, 20);
  const [first, same] = await Promise.all([opened(relays, application), opened(relays, application)]);
  t.is(first, same);
  t.true(watched);
  write(20, 34);
  await came(0, 30, 34);
  first.input.close('over');
  await until('nobody watches over there', () => !source.watched);
  t.is(application.output('talk'), undefined);
  write(34, 37);
  await opened(relays, application);
  await came(1, 30, 37);
  write(37, 40);
  await came(1, 30, 40);
});

test('a relay goes on with another owner, with continuous timestamps, and its viewers stay', async (t) => {
  const { far, application, relays, add } = relayNodes(t);
  const media = await h264({ seconds: 1 });
  const other = await h264({ seconds: 1, width: 160, height: 90 });
  const source = announce(goLive(far, 'app', 'talk', [media.track]), far);
  const output = await opened(relays, application);
  const packets = record(output);
  for (const packet of packetsOf(media, 900_000_000)) source.write(packet);
  await until('all packets', () => packets.length === media.frames.length);
  source.input.close('the publisher went');
  const third = add('third');
  const next = announce(goLive(third, 'app', 'talk', [other.track]), third);
  await until('it is relayed again', () => next.watched);
  for (const packet of packetsOf(other)) next.write(packet);
  await until('all packets of both', () => packets.length === media.frames.length + other.frames.length);
  t.true(packets.every(({ dts }, i) => i === 0 || dts > (packets[i - 1] as Packet).dts));
  t.deepEqual(
    output.tracks.map((track) => (track as { width: number }).width),
    [160],
  );
  t.false(output.closed);
  next.input.end('deleted');
  await until('it ends with the stream', () => output.closed);
});

test('a relay of a stream that no node has, or of a node that is gone, is not found', async (t) => {
  const { application, relays } = relayNodes(t);
  t.is(await relays.find(application, 'none'), undefined);
  await t.throwsAsync(relays.open(application, 'gone', { owner: { id: 'nobody', incarnation: '1' }, input: 'gone' }));
  t.is(application.relays.size, 0);
});
