import { mock } from 'node:test';
import test from 'ava';
import { buildAdtsHeader } from '../../../../src/codecs/aac-adts.ts';
import { parseAvcConfig } from '../../../../src/codecs/h264.ts';
import { joinNals, nalUnits } from '../../../../src/codecs/nal.ts';
import { Continuity } from '../../../../src/core/continuity.ts';
import type { AudioTrack, VideoCodec, VideoTrack } from '../../../../src/core/track.ts';
import { buildAudioTag, buildVideoTag } from '../../../support/rtmp/flv-build.ts';
import { aac, h264 } from '../../../support/rtmp/flv-media.ts';
import { setUpPublication } from '../../../support/rtmp/publication.ts';
import { until } from '../../../support/time/until.ts';
import { box, ivfFrames, samples, vector } from '../../codecs/vectors.ts';

const BOTH = ['onMetaData', { videocodecid: 7, audiocodecid: 10 }];
const ONLY_AUDIO = ['onMetaData', { audiocodecid: 10 }];
const ONLY_VIDEO = ['onMetaData', { videocodecid: 7 }];

const video = h264();
const sound = aac();
const frame = (i: number) => video.frames[i % 2] as Buffer;
const tone = (i: number) => sound.frames[i % 10] as Buffer;

function tag(codec: VideoCodec, packet: 'config' | 'frame', data: Buffer, key = true): Buffer {
  return buildVideoTag({ codec, packet, key, data });
}

test('the stream begins when something of both media has come, with all that came before', (t) => {
  const { publication, tracks, packets } = setUpPublication(t);
  publication.video(video.config, 0);
  publication.video(frame(0), 100);
  publication.video(frame(1), 140);
  t.is(tracks.length, 0);
  publication.audio(sound.config, 0);
  t.is(tracks.length, 0);
  publication.audio(tone(0), 110);
  t.is(tracks.length, 1);
  t.deepEqual(
    packets.map(({ track, dts }) => [track.type, dts]),
    [
      ['video', 0],
      ['video', 3600],
      ['audio', 480],
    ],
  );
});

test('the earliest packet that was held back is the beginning of time', (t) => {
  const { publication, packets } = setUpPublication(t);
  publication.audio(sound.config, 0);
  publication.audio(tone(0), 120);
  publication.audio(tone(1), 100);
  publication.video(video.config, 0);
  publication.video(frame(0), 140);
  t.is(packets.at(-1)?.dts, 3600);
});

test('a medium that is not announced is not waited for', (t) => {
  const { publication, tracks } = setUpPublication(t);
  publication.data(ONLY_VIDEO);
  publication.video(video.config, 0);
  publication.video(frame(0), 0);
  t.is(tracks.length, 1);
});

test('a medium that is described and never comes is no track, whatever else comes', async (t) => {
  for (const [described, sent, announced] of [
    [sound.config, video, BOTH],
    [sound.config, video, undefined],
    [sound.config, video, ONLY_VIDEO],
  ] as const) {
    const { publication, tracks, packets } = setUpPublication(t);
    if (announced !== undefined) publication.data(announced);
    publication.video(sent.config, 0);
    publication.audio(described, 0);
    publication.video(frame(0), 0);
    t.is(tracks.length, 0, 'it may come yet');
    await until('the stream', () => tracks.length === 1);
    for (let i = 1; i < 10; i++) publication.video(frame(i), i * 40);
    t.deepEqual(
      tracks.map((set) => set.map(({ id }) => id)),
      [[0]],
    );
    t.is(packets.length, 10);
  }
});

test.serial('headers alone make no stream, nor is the publisher given up', (t) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const { publication, tracks, failures } = setUpPublication(t);
  publication.video(video.config, 0);
  publication.audio(sound.config, 0);
  mock.timers.tick(60_000);
  t.deepEqual([tracks.length, failures.length], [0, 0]);
  publication.audio(tone(0), 0);
  mock.timers.tick(1000);
  t.is(tracks.length, 0, 'pictures begin later');
  publication.video(frame(0), 1000);
  t.deepEqual(
    tracks.map((set) => set.map(({ id }) => id)),
    [[0, 1]],
  );
});

test.serial('a picture that is described and never comes is not waited for without end', (t) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const { publication, tracks } = setUpPublication(t);
  publication.video(video.config, 0);
  publication.audio(sound.config, 0);
  publication.audio(tone(0), 0);
  mock.timers.tick(1000);
  mock.timers.tick(4000);
  t.deepEqual(
    tracks.map((set) => set.map(({ id }) => id)),
    [[1]],
  );
});

test('a medium that is announced but does not come is waited for only so long', async (t) => {
  const { publication, tracks, packets } = setUpPublication(t);
  publication.data(BOTH);
  publication.video(video.config, 0);
  publication.video(frame(0), 0);
  t.is(tracks.length, 0);
  await until('the stream', () => tracks.length === 1);
  t.is(packets.length, 1);
});

test('a publisher that announces nothing is not waited for longer than for the tracks of the stream that it continues', (t) => {
  const first = setUpPublication(t);
  first.publication.data(ONLY_VIDEO);
  first.publication.video(video.config, 0);
  first.publication.video(frame(0), 0);
  const { kept } = first.input.continuity;
  const second = setUpPublication(t, {}, new Continuity(kept));
  second.publication.video(video.config, 0);
  second.publication.video(frame(0), 0);
  t.is(second.packets.length, 1);
  second.publication.audio(sound.config, 0);
  second.publication.audio(tone(0), 20);
  const third = setUpPublication(t, {}, new Continuity(second.input.continuity.kept));
  third.publication.video(video.config, 0);
  third.publication.video(frame(0), 0);
  t.is(third.packets.length, 0, 'it had sound, too');
  third.publication.audio(sound.config, 0);
  third.publication.audio(tone(0), 0);
  t.is(third.packets.length, 2);
});

test('a publisher that leaves before its stream is live says nothing of the tracks of the next one', (t) => {
  const first = setUpPublication(t);
  first.publication.video(video.config, 0);
  t.is(first.input.continuity.kept.size, 0);
});

test('kept tracks of an earlier stream may come from another version', (t) => {
  for (const value of [null, 'tracks', { video: [0] }, { video: [0.5], audio: [] }, { video: [], audio: [] }]) {
    const { publication, packets } = setUpPublication(t, {}, new Continuity(new Map([['rtmpTracks', value]])));
    publication.video(video.config, 0);
    publication.video(frame(0), 0);
    t.is(packets.length, 0);
    publication.audio(sound.config, 0);
    publication.audio(tone(0), 0);
    t.is(packets.length, 2);
  }
});

test('the media that is held back is limited', (t) => {
  const { publication, packets, tracks } = setUpPublication(t);
  publication.data(BOTH);
  publication.video(video.config, 0);
  let sent = 0;
  for (; tracks.length === 0 && sent < 5000; sent++) publication.video(frame(sent), sent * 40);
  t.true(sent < 2000);
  t.is(packets.length, sent);
});

test('a medium of a codec that is not taken is not waited for', (t) => {
  const { publication, tracks, packets } = setUpPublication(t);
  publication.data(BOTH);
  publication.audio(Buffer.of(0xb2, 0), 0);
  publication.video(video.config, 0);
  publication.video(frame(0), 0);
  t.deepEqual(
    tracks.map((set) => set.map(({ type }) => type)),
    [['video']],
  );
  t.is(packets.length, 1);
});

test('a medium that comes late joins the tracks, in time', (t) => {
  const { publication, tracks, packets } = setUpPublication(t);
  publication.data(ONLY_VIDEO);
  publication.video(video.config, 0);
  for (let i = 0; i < 10; i++) publication.video(frame(i), i * 40);
  publication.audio(sound.config, 360);
  t.is(tracks.length, 1);
  publication.audio(tone(0), 380);
  t.deepEqual(
    tracks.map((set) => set.map(({ id }) => id)),
    [[0], [0, 1]],
  );
  t.is(packets.at(-1)?.dts, 380 * 48);
});

test('an identical header again is no change', (t) => {
  const { publication, input, tracks } = setUpPublication(t);
  publication.video(video.config, 0);
  publication.audio(sound.config, 0);
  for (let i = 0; i < 4; i++) {
    publication.video(video.config, i * 40);
    publication.audio(sound.config, i * 40);
    publication.video(frame(i), i * 40);
    publication.audio(tone(i), i * 21);
  }
  t.is(tracks.length, 1);
  t.is(input.measured(0)?.configChangeCount, 0);
});

test('a new header is a new track with the same id, from its first packet on', (t) => {
  const { publication, input, tracks, packets } = setUpPublication(t);
  const other = h264('h264-high-bframes.mp4');
  publication.video(video.config, 0);
  publication.audio(sound.config, 0);
  publication.video(frame(0), 0);
  publication.audio(tone(0), 0);
  publication.video(other.config, 40);
  t.is(tracks.length, 1);
  publication.video(other.frames[0] as Buffer, 40);
  t.is(tracks.length, 2);
  const [before, after] = [packets[0]?.track, packets[2]?.track] as [VideoTrack, VideoTrack];
  t.is(before.id, after.id);
  t.deepEqual([before.width, after.width], [66, 1920]);
  t.is(tracks[1]?.[0], after);
  t.is(input.measured(0)?.configChangeCount, 1);
});

test('a source that changes its configuration all the time is given up', (t) => {
  const { publication, failures, tracks } = setUpPublication(t);
  const other = h264('h264-high-bframes.mp4');
  publication.data(ONLY_VIDEO);
  for (let i = 0; i < 200; i++) {
    const media = i % 2 === 0 ? video : other;
    publication.video(media.config, i * 40);
    publication.video(media.frames[0] as Buffer, i * 40);
  }
  t.deepEqual(failures, ['the configuration of the stream changes too often']);
  t.true(tracks.length < 100);
});

test('a new sampling rate goes on in its own timebase', (t) => {
  const { publication, packets } = setUpPublication(t);
  publication.data(ONLY_AUDIO);
  publication.audio(sound.config, 0);
  publication.audio(tone(0), 0);
  publication.audio(buildAudioTag({ codec: 'AAC', packet: 'config', data: Buffer.of(0x12, 0x10) }), 1000);
  publication.audio(tone(1), 1000);
  t.deepEqual(
    packets.map(({ track, dts }) => [(track as AudioTrack).samplerate, dts]),
    [
      [48_000, 0],
      [44_100, 44_100],
    ],
  );
});

test('a new codec in mid-stream becomes a new track', (t) => {
  const { publication, packets, tracks } = setUpPublication(t);
  const hevc = vector('h265-main.mp4');
  publication.data(ONLY_VIDEO);
  publication.video(video.config, 0);
  publication.video(frame(0), 0);
  publication.video(tag('H265', 'config', box(hevc, 'hvcC')), 40);
  publication.video(tag('H265', 'frame', samples(hevc)[0] as Buffer), 40);
  t.deepEqual(
    packets.map(({ track }) => track.codec),
    ['H264', 'H265'],
  );
  t.is(tracks.length, 2);
});

test('parameter sets in the stream leave it and change the configuration when they differ', (t) => {
  const { publication, packets, tracks } = setUpPublication(t);
  const mp4 = vector('h264-high-bframes.mp4');
  const { sps, pps } = parseAvcConfig(box(mp4, 'avcC'));
  const [picture] = samples(mp4) as [Buffer];
  const known = parseAvcConfig(video.config.subarray(5));
  publication.data(ONLY_VIDEO);
  publication.video(video.config, 0);
  const inBand = (sets: readonly Buffer[], data: Buffer) => tag('H264', 'frame', Buffer.concat([joinNals(sets), data]));
  const bare = frame(0).subarray(5);
  publication.video(inBand([...known.sps, ...known.pps], bare), 0);
  t.is(tracks.length, 1);
  publication.video(inBand([...sps, ...pps], picture), 40);
  t.is(tracks.length, 2);
  t.deepEqual(
    packets.map(({ track }) => (track as VideoTrack).width),
    [66, 1920],
  );
  for (const { data } of packets) for (const nal of nalUnits(data)) t.false([7, 8].includes((nal[0] as number) & 31));
});

test('a source that sends parameter sets in the stream alone, with start codes', (t) => {
  const { publication, packets, tracks } = setUpPublication(t);
  const { sps, pps } = parseAvcConfig(video.config.subarray(5));
  const nals = [...sps, ...pps, ...nalUnits(frame(0).subarray(5))];
  const annexB = Buffer.concat(nals.flatMap((nal) => [Buffer.of(0, 0, 0, 1), nal]));
  publication.data(ONLY_VIDEO);
  publication.video(tag('H264', 'frame', annexB), 0);
  t.like(tracks[0]?.[0], { codec: 'H264', width: 66, height: 50 });
  t.true(packets[0]?.key);
  t.true([...nalUnits(packets[0]?.data as Buffer)].length > 0);
});

test('lengths of two bytes become lengths of four', (t) => {
  const { publication, packets, tracks } = setUpPublication(t);
  const config = Buffer.from(video.config);
  config[5 + 4] = 0xfd;
  const body = frame(0).subarray(5);
  const short = Buffer.concat(
    [...nalUnits(body)].flatMap((nal) => [Buffer.of(nal.length >> 8, nal.length & 255), nal]),
  );
  publication.data(ONLY_VIDEO);
  publication.video(config, 0);
  publication.video(tag('H264', 'frame', short), 0);
  t.deepEqual(
    [...nalUnits(packets[0]?.data as Buffer)],
    [...nalUnits(body)].filter((nal) => ![7, 8, 9].includes((nal[0] as number) & 31)),
  );
  t.is(parseAvcConfig((tracks[0]?.[0] as VideoTrack).config as Buffer).lengthSize, 4);
});

test('frames are not copied on their way', (t) => {
  const { publication, packets } = setUpPublication(t);
  publication.data(ONLY_VIDEO);
  publication.video(video.config, 0);
  publication.video(frame(1), 0);
  t.is(packets[0]?.data.buffer, frame(1).buffer);
});

test('presentation times are those of the tags, and pictures are decoded before', (t) => {
  const { publication, packets } = setUpPublication(t);
  const body = frame(1).subarray(5);
  publication.data(ONLY_VIDEO);
  publication.video(video.config, 0);
  for (const [i, compositionTime] of [0, 80, -40, -40].entries()) {
    publication.video(
      buildVideoTag({ codec: 'H264', packet: 'frame', key: false, compositionTime, data: body }),
      i * 40,
    );
  }
  t.deepEqual(
    packets.map(({ dts, pts }) => [dts, pts]),
    [
      [0, 0],
      [3600, 10_800],
      [3601, 3601],
      [7200, 7200],
    ],
  );
});

for (const [codec, config, frames, size] of [
  ['H265', box(vector('h265-main.mp4'), 'hvcC'), samples(vector('h265-main.mp4')), [1920, 1080]],
  ['AV1', box(vector('av1-svt.mp4'), 'av1C'), samples(vector('av1-svt.mp4')), [1280, 720]],
  ['VP9', box(vector('vp9-profile0.mp4'), 'vpcC'), samples(vector('vp9-profile0.mp4')), undefined],
  ['VP8', undefined, ivfFrames(vector('vp8.ivf')), undefined],
] as const) {
  test(`${codec} by Enhanced RTMP`, (t) => {
    const { publication, packets, tracks } = setUpPublication(t);
    publication.data(ONLY_VIDEO);
    if (config !== undefined) publication.video(tag(codec, 'config', config), 0);
    for (const [i, data] of frames.entries()) publication.video(tag(codec, 'frame', data, i === 0), i * 40);
    t.is(packets.length, frames.length);
    t.is(tracks.length, 1);
    t.true(packets[0]?.key);
    const track = tracks[0]?.[0] as VideoTrack;
    t.is(track.codec, codec);
    t.true(track.width > 0 && track.height > 0);
    if (size !== undefined) t.deepEqual([track.width, track.height], [...size]);
  });
}

test('AV1 whose configuration comes with its key frame', (t) => {
  const { publication, tracks } = setUpPublication(t);
  const mp4 = vector('av1-svt.mp4');
  publication.data(ONLY_VIDEO);
  publication.video(tag('AV1', 'config', box(mp4, 'av1C').subarray(0, 4)), 0);
  t.is(tracks.length, 0);
  publication.video(tag('AV1', 'frame', samples(mp4)[0] as Buffer), 0);
  t.like(tracks[0]?.[0], { codec: 'AV1', width: 1280, height: 720 });
});

test('AV1 whose record has another sequence header than its key frame begins with that of the key frame', (t) => {
  const { publication, tracks, packets } = setUpPublication(t);
  const mp4 = vector('av1-svt.mp4');
  publication.data(ONLY_VIDEO);
  publication.video(tag('AV1', 'config', box(vector('av1-aom-444.mp4'), 'av1C')), 0);
  for (const [index, data] of samples(mp4).entries()) publication.video(tag('AV1', 'frame', data), index * 33);
  t.is(tracks.length, 1);
  t.like(tracks[0]?.[0], { codec: 'AV1', width: 1280, height: 720, config: box(mp4, 'av1C') });
  t.true(packets.every(({ track }) => track === tracks[0]?.[0]));
});

test('Opus by Enhanced RTMP, with its header and without', (t) => {
  for (const head of [Buffer.from('4f7075734865616401023801 80bb0000 000000'.replaceAll(' ', ''), 'hex'), undefined]) {
    const { publication, packets } = setUpPublication(t);
    publication.data(ONLY_AUDIO);
    if (head !== undefined) publication.audio(buildAudioTag({ codec: 'OPUS', packet: 'config', data: head }), 0);
    // 20 ms of stereo CELT a packet.
    for (let i = 0; i < 3; i++) {
      publication.audio(buildAudioTag({ codec: 'OPUS', packet: 'frame', data: Buffer.of(0xfc, i, i) }), i * 20);
    }
    t.deepEqual(
      packets.map(({ dts, duration }) => [dts, duration]),
      [
        [0, 960],
        [960, 960],
        [1920, 960],
      ],
    );
    t.like(packets[0]?.track, { codec: 'OPUS', samplerate: 48_000, channels: 2 });
    t.truthy((packets[0]?.track as AudioTrack).config);
  }
});

test('AAC whose frames have ADTS headers and no sequence header is played', (t) => {
  const { publication, packets, tracks } = setUpPublication(t);
  publication.data(ONLY_AUDIO);
  const raw = Buffer.alloc(100, 1);
  const adts = buildAdtsHeader({ objectType: 2, samplerate: 48_000, channelConfiguration: 2 }, raw.length);
  const data = Buffer.concat([adts, raw]);
  for (let i = 0; i < 3; i++) publication.audio(buildAudioTag({ codec: 'AAC', packet: 'frame', data }), i * 21);
  t.like(tracks[0]?.[0], { codec: 'AAC', samplerate: 48_000, channels: 2, config: Buffer.of(0x11, 0x90) });
  t.deepEqual(
    packets.map((packet) => [packet.dts, packet.data]),
    [0, 1024, 2048].map((time) => [time, raw]),
  );
});

test('AAC without a sequence header is reported once, and plays when one comes', (t) => {
  const { publication, packets, lines } = setUpPublication(t);
  publication.data(ONLY_AUDIO);
  for (let i = 0; i < 5; i++) publication.audio(tone(i), i * 21);
  t.is(packets.length, 0);
  publication.audio(sound.config, 110);
  publication.audio(tone(5), 110);
  t.is(packets.length, 1);
  publication.end('over');
  t.deepEqual(lines, ['AAC without its sequence header: there will be no audio until it comes']);
});

test('a nanosecond offset counts', (t) => {
  const { publication, packets } = setUpPublication(t);
  const mp4 = vector('av1-svt.mp4');
  const [first, second] = samples(mp4) as [Buffer, Buffer];
  publication.data(ONLY_VIDEO);
  publication.video(tag('AV1', 'config', box(mp4, 'av1C')), 0);
  publication.video(tag('AV1', 'frame', first), 0);
  const offset = Buffer.concat([
    Buffer.from('a702', 'hex'),
    Buffer.from('051615', 'hex'),
    Buffer.of(1),
    Buffer.from('av01'),
    second,
  ]);
  publication.video(offset, 33);
  t.is(packets[1]?.dts, 3000);
});

test('an original timeline keeps the times of the source', (t) => {
  const { publication, packets } = setUpPublication(t, { timestampMode: 'Original' });
  publication.data(ONLY_VIDEO);
  publication.video(video.config, 0);
  publication.video(frame(0), 5000);
  t.is(packets[0]?.dts, 450_000);
});

test('malformed tags are lost, one by one, and the stream goes on', (t) => {
  const { publication, packets, failures } = setUpPublication(t);
  publication.video(video.config, 0);
  publication.audio(sound.config, 0);
  publication.video(frame(0), 0);
  for (const bytes of ['17', '1701000000000000ff00', '19', '90', 'af', '17000000000164']) {
    publication.video(Buffer.from(bytes, 'hex'), 40);
  }
  publication.audio(Buffer.from('af00', 'hex'), 40);
  publication.audio(Buffer.alloc(0), 40);
  publication.audio(tone(0), 60);
  publication.video(frame(1), 80);
  t.is(packets.length, 3);
  t.deepEqual(failures, []);
});
