import test, { type ExecutionContext } from 'ava';
import type { Packet } from '../../src/core/packet.ts';
import type { OutputStream } from '../../src/core/output-stream.ts';
import { sameFormat, type DataTrack, type Track } from '../../src/core/track.ts';
import type { WireDescription } from '../../src/protocols/ovt/description.ts';
import { aac } from '../support/media/aac.ts';
import { goLive } from '../support/server/live.ts';
import { playOvt, startOvt } from '../support/ovt/ovt.ts';
import { av1Media, countFrames, h265, opusMedia, packetsOf, PICTURES } from '../support/ovt/ovt-media.ts';
import { dataTrack, eventPacket } from '../support/media/packets.ts';
import { rawOvt } from '../support/ovt/raw-ovt.ts';
import { until } from '../support/time/until.ts';
import { h264, ivf, type Media } from '../support/webrtc/webrtc-media.ts';

async function playing(t: ExecutionContext, tracks: readonly Track[]) {
  const ovt = await startOvt();
  t.teardown(() => ovt.close());
  const output = goLive(ovt.registry, 'app', 'talk', tracks);
  const player = await playOvt(ovt.url('app/talk'));
  t.teardown(() => player.client.close());
  return { ovt, output, ...player };
}

function write(output: OutputStream, packets: readonly Packet[]): void {
  for (const packet of packets) output.write(packet);
}

const CASES: readonly (readonly [name: string, media: () => Promise<readonly Media<Track>[]>])[] = [
  ['H.264 and AAC', async () => [await h264({ seconds: 1 }), await aac(440, {}, 1)]],
  ['H.265', async () => [await h265()]],
  ['AV1 and Opus', async () => [await av1Media(), await opusMedia()]],
  ['VP8', async () => [await ivf('VP8', { seconds: 1 })]],
  ['images', async () => [await h264({ seconds: 1 }), PICTURES]],
];

for (const [name, media] of CASES) {
  test(`${name}: what is put out comes in as it was`, async (t) => {
    const all = await media();
    const { output, recorder } = await playing(
      t,
      all.map(({ track }) => track),
    );
    const sent = all.map((one) => packetsOf(one));
    for (const packets of sent) write(output, packets);
    await until('all packets', () => recorder.packets.length === sent.flat().length);
    const [{ tracks } = { tracks: [] }] = recorder.told;
    t.is(tracks.filter(({ type }) => type !== 'data').length, all.length);
    for (const [i, { track }] of all.entries()) {
      t.true(sameFormat(tracks[i] as Track, track), `${track.codec}: ${JSON.stringify(tracks[i])}`);
      t.like(tracks[i], { id: track.id, name: track.name, type: track.type });
      const received = recorder.of(track.id);
      const own = sent[i] as Packet[];
      t.true(
        received.every(({ data, key }, at) => data.equals((own[at] as Packet).data) && key === (own[at] as Packet).key),
      );
      const base = (received[0] as Packet).dts;
      t.deepEqual(
        received.map(({ dts }) => dts - base),
        own.map(({ dts }) => dts - (own[0] as Packet).dts),
      );
    }
  });
}

test('an edge that is no Kiln gets start codes with parameter sets, and ADTS', async (t) => {
  const [video, audio] = [await h264({ seconds: 0.5 }), await aac(440, {}, 0.5)];
  const ovt = await startOvt();
  t.teardown(() => ovt.close());
  const output = goLive(ovt.registry, 'app', 'talk', [video.track, audio.track]);
  const edge = await rawOvt(t, ovt.server.port);
  t.like(await edge.ask('describe', ovt.url('app/talk')), {
    code: 200,
    contents: { version: 18, stream: { appName: '#default#app', streamName: 'talk' } },
  });
  const played = await edge.ask('play', ovt.url('app/talk'));
  t.is(played.code, 200);
  t.false('contents' in played);
  write(output, packetsOf(video).slice(0, 2));
  write(output, packetsOf(audio).slice(0, 1));
  const frames = await until('frames', () => edge.frames.length === 3 && edge.frames);
  t.deepEqual(
    frames.map(({ bitstream, packetType, key }) => [bitstream, packetType, key]),
    [
      [1, 3, true],
      [1, 3, false],
      [10, 1, true],
    ],
  );
  t.is(frames[0]?.data.subarray(0, 5).toString('hex'), '0000000167');
  t.is(frames[1]?.data.subarray(0, 4).toString('hex'), '00000001');
  t.is(frames[2]?.data.subarray(0, 2).toString('hex'), 'fff1');
  output.input.close('over');
  const { application, code } = await edge.notice();
  t.deepEqual([application, code], ['stop', 200]);
});

test('an edge that is no Kiln gets all ID3 tags in one track, which is there from the beginning', async (t) => {
  const video = await h264({ seconds: 0.5 });
  const tags = dataTrack({ timebase: { num: 1, den: 1000 } });
  const forVideo: DataTrack = { ...tags, id: 1025, target: 'video', timebase: video.track.timebase };
  const forAudio: DataTrack = { ...tags, id: 1026, target: 'audio' };
  const splices: DataTrack = { ...tags, id: 1027, codec: 'SCTE35' };
  const ovt = await startOvt();
  t.teardown(() => ovt.close());
  const output = goLive(ovt.registry, 'app', 'talk', [video.track]);
  const edge = await rawOvt(t, ovt.server.port);
  const { contents } = await edge.ask('describe', ovt.url('app/talk'));
  const [, described] = (contents as WireDescription).stream.tracks;
  t.like(described, { id: 1, mediaType: 2, codecId: 0, timebaseDen: 90_000 });
  t.false('eventTarget' in (described as object));
  t.is((await edge.ask('play', ovt.url('app/talk'))).code, 200);
  output.setTracks([video.track, tags, forVideo, forAudio, splices]);
  const event = (track: DataTrack, ticks: number) => eventPacket(track, ticks, `ID3 of ${track.id}`);
  write(output, [event(tags, 500), event(forVideo, 45_001), event(splices, 501), event(forAudio, 502)]);
  const frames = await until('the events', () => edge.frames.length === 3 && edge.frames);
  t.deepEqual(
    frames.map(({ track, mediaType, bitstream, packetType, pts, data }) => [
      track,
      mediaType,
      bitstream,
      packetType,
      pts,
      data.toString(),
    ]),
    [
      [1, 2, 18, 4, 45_000, 'ID3 of 1024'],
      [1, 2, 18, 5, 45_001, 'ID3 of 1025'],
      [1, 2, 18, 6, 45_180, 'ID3 of 1026'],
    ],
  );
  output.input.close('over');
  t.is((await edge.notice()).application, 'stop', 'there was nothing to tell of the tracks');
});

test('every frame that an OVT edge receives is decoded by ffmpeg', async (t) => {
  const media = [await h264({ seconds: 1 }), await h265(2), await aac(440, {}, 1)];
  const ovt = await startOvt();
  t.teardown(() => ovt.close());
  const output = goLive(
    ovt.registry,
    'app',
    'talk',
    media.map(({ track }) => track),
  );
  const edge = await rawOvt(t, ovt.server.port);
  t.is((await edge.ask('play', ovt.url('app/talk'))).code, 200);
  const sent = media.flatMap((one: Media<Track>) => packetsOf(one));
  write(output, sent);
  await until('all frames', () => edge.frames.length === sent.length);
  for (const [i, format] of ['h264', 'hevc', 'aac'].entries()) {
    const { track, frames } = media[i] as Media<Track>;
    const stream = Buffer.concat(edge.frames.filter((frame) => frame.track === track.id).map(({ data }) => data));
    t.is(await countFrames(format, stream), frames.length, format);
  }
});

test('a change of tracks in mid-stream', async (t) => {
  const [one, other, sound] = [
    await h264({ seconds: 0.5 }),
    await h264({ seconds: 0.5, width: 160, height: 90 }),
    await aac(440, {}, 0.5),
  ];
  const { output, recorder } = await playing(t, [one.track, sound.track]);
  const [first, ...others] = packetsOf(sound);
  write(output, [...packetsOf(one), first as Packet]);
  output.setTracks([other.track, sound.track]);
  write(output, packetsOf(other, 90_000));
  output.setTracks([sound.track]);
  write(output, others);
  await until(
    'all packets',
    () => recorder.packets.length === one.frames.length + other.frames.length + sound.frames.length,
  );
  const shown = recorder.told.map(({ tracks }) => tracks.map((track) => ('width' in track ? track.width : track.name)));
  t.deepEqual(shown, [
    [320, 'audio', 'Data'],
    [160, 'audio', 'Data'],
    ['audio', 'Data'],
  ]);
  const tracks = [...new Set(recorder.packets.map(({ track }) => track))];
  t.deepEqual(
    tracks.map((track) => ('width' in track ? track.width : track.name)),
    [320, 'audio', 160],
  );
});

test('an OVT player is notified when the stream ends, and whether it goes on', async (t) => {
  for (const forGood of [false, true]) {
    const { track } = await h264({ seconds: 0.1 });
    const { output, recorder } = await playing(t, [track]);
    if (forGood) output.input.end('deleted');
    else output.input.close('the publisher went');
    const ended = await until('the end', () => recorder.ended);
    t.deepEqual(ended, {
      reason: `the origin ended the stream: ${forGood ? 'deleted' : 'the publisher went'}`,
      forGood,
    });
  }
});

test('a player is a session: listed, counted, and thrown out by name', async (t) => {
  const { track, frames } = await h264({ seconds: 0.5 });
  const ovt = await startOvt();
  t.teardown(() => ovt.close());
  const output = goLive(ovt.registry, 'app', 'talk', [track]);
  const { recorder } = await playOvt(`${ovt.url('app/talk')}?session=edge-1`);
  write(output, packetsOf({ track, frames }));
  await until('all packets', () => recorder.packets.length === frames.length);
  const session = output.sessions.get('edge-1');
  t.like(session, { kind: 'ovt' });
  t.is(output.counters.publishers.ovt, 1);
  t.true((session?.out.totalBytes ?? 0) > frames.reduce((sum, { data }) => sum + data.length, 0));
  t.is(output.counters.out.totalBytes, session?.out.totalBytes ?? 0);
  await t.throwsAsync(playOvt(`${ovt.url('app/talk')}?session=edge-1`), { message: /refused \(409\)/ });
  session?.kick();
  await until('the end', () => recorder.ended);
  t.is(output.sessions.size, 0);
  t.is(output.counters.publishers.ovt, 0);
  await t.throwsAsync(playOvt(`${ovt.url('app/talk')}?session=edge-1`), { message: /refused \(403\)/ });
  const again = await playOvt(ovt.url('app/talk'));
  again.client.close();
  await until('it is gone', () => output.sessions.size === 0);
});
