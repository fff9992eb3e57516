import test from 'ava';
import { buildFlacHeader } from '../../../../src/codecs/flac.ts';
import { buildOpusHead } from '../../../../src/codecs/opus.ts';
import type { AudioCodec, AudioTrack, MediaTrack, VideoCodec, VideoTrack } from '../../../../src/core/track.ts';
import type { AmfObject } from '../../../../src/protocols/rtmp/amf-value.ts';
import { buildAudioTag, buildAudioTracks, buildVideoTag, buildVideoTracks } from '../../../support/rtmp/flv-build.ts';
import { aac, h264 } from '../../../support/rtmp/flv-media.ts';
import { setUpPublication } from '../../../support/rtmp/publication.ts';
import { until } from '../../../support/time/until.ts';
import { box, samples, seeded, vector } from '../../codecs/vectors.ts';

const AVC = vector('h264-baseline.mp4');
const [PICTURE, NEXT] = samples(AVC) as [Buffer, Buffer];
const LARGE = vector('h264-high-bframes.mp4');
const HEVC = vector('h265-main.mp4');
const ASC = Buffer.of(0x11, 0x90);
const MONO_ASC = Buffer.of(0x11, 0x88);

const sound = (trackId: number, data: Buffer, codec: AudioCodec = 'AAC') => ({ trackId, codec, data });
const picture = (trackId: number, data: Buffer, codec: VideoCodec = 'H264') => ({ trackId, codec, data });
const said = (properties: AmfObject) => ['onMetaData', properties];
const ids = (tracks: readonly { readonly id: number }[] | undefined) => tracks?.map(({ id }) => id);

test('sound in two languages: each track has its own packets, times and configuration', (t) => {
  const { publication, tracks, packets } = setUpPublication(t);
  publication.data(
    said({
      videocodecid: 7,
      audiocodecid: 10,
      language: 'eng',
      audiodatarate: 128,
      audioTrackIdInfoMap: { 1: { language: 'kor', audiodatarate: 64 } },
    }),
  );
  publication.video(h264().config, 0);
  publication.audio(aac().config, 0);
  publication.audio(buildAudioTracks('config', [sound(1, MONO_ASC)]), 0);
  for (let i = 0; i < 3; i++) {
    publication.video(h264().frames[i % 2] as Buffer, i * 40);
    publication.audio(buildAudioTag({ codec: 'AAC', packet: 'frame', data: Buffer.of(1, i) }), i * 21);
    publication.audio(buildAudioTracks('frame', [sound(1, Buffer.of(2, i))]), i * 21);
  }
  t.is(tracks.length, 1);
  t.deepEqual(ids(tracks[0]), [0, 1, 3]);
  t.like(tracks[0]?.[1], { type: 'audio', name: 'Audio', language: 'eng', channels: 2, bitrate: 128_000 });
  t.like(tracks[0]?.[2], { type: 'audio', name: 'Audio', language: 'kor', channels: 1, bitrate: 64_000 });
  for (const [id, mark] of [
    [1, 1],
    [3, 2],
  ]) {
    const own = packets.filter(({ track }) => track.id === id);
    t.deepEqual(
      own.map(({ dts, data }) => [dts, data[0]]),
      [
        [0, mark],
        [1024, mark],
        [2048, mark],
      ],
    );
  }
});

test('a ladder of pictures of several codecs, all in one message each', (t) => {
  const { publication, tracks, packets } = setUpPublication(t);
  publication.data(
    said({
      videocodecid: 7,
      framerate: 25,
      videodatarate: 6000,
      videoTrackIdInfoMap: { 1: { videodatarate: 3000 }, 2: { videodatarate: 1000 } },
    }),
  );
  publication.video(
    buildVideoTracks('config', true, [
      picture(0, box(LARGE, 'avcC')),
      picture(1, box(AVC, 'avcC')),
      picture(2, box(HEVC, 'hvcC'), 'H265'),
    ]),
    0,
  );
  t.is(tracks.length, 0);
  publication.video(
    buildVideoTracks('frame', true, [
      { ...picture(0, samples(LARGE)[0] as Buffer), compositionTime: 80 },
      picture(1, PICTURE),
      picture(2, samples(HEVC)[0] as Buffer, 'H265'),
    ]),
    40,
  );
  publication.video(buildVideoTracks('frame', false, [picture(1, NEXT)]), 80);
  t.deepEqual(ids(tracks.at(-1)), [0, 2, 4]);
  t.deepEqual(
    (tracks.at(-1) as VideoTrack[]).map(({ codec, width, bitrate, framerate }) => [codec, width, bitrate, framerate]),
    [
      ['H264', 1920, 6_000_000, 25],
      ['H264', 66, 3_000_000, 25],
      ['H265', 1920, 1_000_000, 25],
    ],
  );
  t.deepEqual(
    packets.map(({ track, dts, pts }) => [track.id, dts, pts]),
    [
      [0, 0, 7200],
      [2, 0, 0],
      [4, 0, 0],
      [2, 3600, 3600],
    ],
  );
  t.is(tracks.length, 1);
});

test('announced tracks are waited for, but only so long; one that is late joins', async (t) => {
  const { publication, tracks, packets } = setUpPublication(t);
  publication.data(said({ audiocodecid: 10, audioTrackIdInfoMap: { 1: {}, 2: {} } }));
  publication.audio(aac().config, 0);
  publication.audio(buildAudioTracks('config', [sound(2, ASC)]), 0);
  publication.audio(aac().frames[0] as Buffer, 0);
  publication.audio(buildAudioTracks('frame', [sound(2, Buffer.of(1))]), 0);
  t.is(tracks.length, 0);
  await until('the stream', () => tracks.length === 1);
  t.deepEqual(ids(tracks[0]), [1, 5]);
  publication.audio(buildAudioTracks('config', [sound(1, ASC)]), 480);
  publication.audio(buildAudioTracks('frame', [sound(1, Buffer.of(1))]), 500);
  t.deepEqual(ids(tracks[1]), [1, 3, 5]);
  t.like(packets.at(-1), { dts: 24_000, track: { id: 3 } });
});

test('unannounced tracks are complete when something of each that is described has come', (t) => {
  const { publication, tracks } = setUpPublication(t);
  publication.video(h264().config, 0);
  publication.audio(aac().config, 0);
  publication.audio(buildAudioTracks('config', [sound(1, ASC), sound(2, ASC)]), 0);
  publication.video(h264().frames[0] as Buffer, 0);
  publication.audio(aac().frames[0] as Buffer, 0);
  publication.audio(buildAudioTracks('frame', [sound(1, Buffer.of(1))]), 0);
  t.is(tracks.length, 0);
  publication.audio(buildAudioTracks('frame', [sound(2, Buffer.of(1))]), 0);
  t.deepEqual(tracks.map(ids), [[0, 1, 3, 5]]);
});

test('a fault in one track is counted and harms no other', (t) => {
  const { publication, tracks, packets, failures, lines } = setUpPublication(t);
  publication.data(said({ audiocodecid: 10, audioTrackIdInfoMap: { 1: {}, 2: {} } }));
  const unknown = Buffer.from(
    '9520 6d703461 00 000002 1190 61632d34 01 000001 00 6d703461 02 000002 1190'.replaceAll(' ', ''),
    'hex',
  );
  publication.audio(unknown, 0);
  // AudioSpecificConfig of nothing, cut off, and a part longer than its message
  publication.audio(buildAudioTracks('config', [sound(0, ASC), sound(3, Buffer.of(0xff))]), 0);
  const good = buildAudioTracks('frame', [sound(0, Buffer.of(7)), sound(2, Buffer.of(8))]);
  publication.audio(good, 0);
  publication.audio(good.subarray(0, -1), 21);
  t.deepEqual(ids(tracks[0]), [1, 5]);
  t.deepEqual(
    packets.map(({ track, data }) => [track.id, ...data]),
    [
      [1, 7],
      [5, 8],
      [1, 7],
    ],
  );
  t.deepEqual(failures, []);
  publication.end('over');
  t.true(lines.includes('audio FourCC "ac-4" is not supported'));
  t.is(lines.length, 3, lines.join());
});

test('a plain tag and one of track 0 are of the same track', (t) => {
  const { publication, tracks, packets } = setUpPublication(t);
  publication.data(said({ audiocodecid: 10 }));
  publication.audio(aac().config, 0);
  publication.audio(buildAudioTracks('frame', [sound(0, Buffer.of(1))]), 0);
  publication.audio(aac().frames[0] as Buffer, 21);
  t.deepEqual(tracks.map(ids), [[1]]);
  t.is(packets.length, 2);
});

test('a new configuration of a track is that of this track alone', (t) => {
  const { publication, input, tracks } = setUpPublication(t);
  publication.data(said({ audiocodecid: 10, audioTrackIdInfoMap: { 1: { language: 'kor' } } }));
  publication.audio(buildAudioTracks('config', [sound(0, ASC), sound(1, ASC)]), 0);
  publication.audio(buildAudioTracks('frame', [sound(0, Buffer.of(1)), sound(1, Buffer.of(1))]), 0);
  publication.audio(buildAudioTracks('config', [sound(1, Buffer.of(0x12, 0x10))]), 21);
  publication.audio(buildAudioTracks('frame', [sound(0, Buffer.of(1)), sound(1, Buffer.of(1))]), 21);
  t.deepEqual(tracks.map(ids), [
    [1, 3],
    [1, 3],
  ]);
  t.is(tracks[1]?.[0], tracks[0]?.[0]);
  t.like(tracks[1]?.[1], { samplerate: 44_100, language: 'kor' });
  t.deepEqual(
    [1, 3].map((id) => input.measured(id)?.configChangeCount),
    [0, 1],
  );
});

test('the number of tracks of a kind is limited, with one warning', (t) => {
  const { publication, tracks, packets, failures, lines } = setUpPublication(t);
  const many = Array.from({ length: 40 }, (_, trackId) => trackId);
  publication.audio(
    buildAudioTracks(
      'config',
      many.map((trackId) => sound(trackId, ASC)),
    ),
    0,
  );
  publication.video(h264().config, 0);
  for (let i = 0; i < 3; i++) {
    publication.audio(
      buildAudioTracks(
        'frame',
        many.map((trackId) => sound(trackId, Buffer.of(1))),
      ),
      i * 21,
    );
  }
  publication.video(h264().frames[0] as Buffer, 0);
  t.is(tracks.length, 1);
  t.is(tracks[0]?.length, 17);
  t.is(packets.length, 3 * 16 + 1);
  t.deepEqual(failures, []);
  t.deepEqual(lines, ['the publisher sends more than 16 audio tracks: the rest are ignored']);
});

test('a configuration of absurd length is refused', (t) => {
  const { publication, packets, lines } = setUpPublication(t);
  publication.data(said({ audiocodecid: 10 }));
  publication.audio(
    buildAudioTag({ codec: 'AAC', packet: 'config', data: Buffer.concat([ASC, Buffer.alloc(100_000)]) }),
    0,
  );
  publication.audio(aac().frames[0] as Buffer, 0);
  t.is(packets.length, 0);
  publication.end('over');
  t.true(lines.some((line) => /configuration is too long/.test(line)));
});

test('metadata that comes behind the headers counts for the first announcement of the tracks', (t) => {
  const { publication, tracks } = setUpPublication(t);
  publication.video(h264().config, 0);
  publication.video(h264().frames[0] as Buffer, 0);
  publication.audio(aac().config, 0);
  publication.audio(aac().frames[0] as Buffer, 0);
  t.is(tracks.length, 1);
  const late = setUpPublication(t);
  late.publication.video(h264().config, 0);
  late.publication.video(h264().frames[0] as Buffer, 0);
  late.publication.data(said({ videocodecid: 7, audiocodecid: 10, videodatarate: 2500, audiodatarate: 96 }));
  late.publication.audio(aac().config, 0);
  late.publication.audio(aac().frames[0] as Buffer, 0);
  t.deepEqual(
    (late.tracks[0] as MediaTrack[]).map(({ bitrate }) => bitrate),
    [2_500_000, 96_000],
  );
  t.is(late.packets[0]?.track, late.tracks[0]?.[0]);
});

test('metadata of a stream that is live is shown by the next packets, without a change of configuration', async (t) => {
  const { publication, input, tracks, packets } = setUpPublication(t);
  publication.video(h264().config, 0);
  publication.audio(aac().config, 0);
  const send = (i: number) => {
    publication.video(h264().frames[i % 2] as Buffer, i * 40);
    publication.audio(aac().frames[i % 10] as Buffer, i * 40);
  };
  send(0);
  t.is(tracks.length, 1);
  const properties = { videocodecid: 7, audiocodecid: 10, videodatarate: 2500, framerate: 25, language: 'kor' };
  publication.data(said(properties));
  send(1);
  send(2);
  t.is(tracks.length, 3, 'each track once');
  t.like(tracks[2]?.[0], { bitrate: 2_500_000, framerate: 25 });
  t.like(tracks[2]?.[1], { language: 'kor' });
  t.is((tracks[2]?.[0] as VideoTrack).config, (tracks[0]?.[0] as VideoTrack).config);
  t.is(packets.at(-1)?.track, tracks[2]?.[1]);
  // one after the other within a second: what came last counts, and the same again is no change
  for (let rate = 1; rate <= 100; rate++) publication.data(said({ ...properties, audiodatarate: rate }));
  let i = 3;
  await until('the last of them', () => {
    send(i++);
    return (input.tracks[1] as AudioTrack).bitrate === 100_000;
  });
  t.is(tracks.length, 4);
  t.deepEqual(
    [0, 1].map((id) => input.measured(id)?.configChangeCount),
    [0, 0],
  );
});

test('random, cut and changed multitrack messages never throw', (t) => {
  const { publication, packets, failures } = setUpPublication(t);
  const messages = [
    buildAudioTracks('config', [sound(0, ASC), sound(1, MONO_ASC)]),
    buildAudioTracks('frame', [sound(0, Buffer.of(1, 2)), sound(1, Buffer.of(3, 4))]),
    buildVideoTracks('config', true, [picture(0, box(AVC, 'avcC')), picture(1, box(HEVC, 'hvcC'), 'H265')]),
    buildVideoTracks('frame', true, [picture(0, PICTURE), picture(1, samples(HEVC)[0] as Buffer, 'H265')]),
    buildVideoTag({ codec: 'H264', packet: 'frame', key: false, data: NEXT }),
  ];
  const random = seeded(4711);
  const pick = (below: number) => Math.floor(random() * below);
  for (let round = 0; round < 20_000 && failures.length === 0; round++) {
    const message = Buffer.from(messages[pick(messages.length)] as Buffer).subarray(
      0,
      pick(3) === 0 ? pick(120) : undefined,
    );
    if (message.length > 0) for (let i = pick(4); i > 0; i--) message[pick(Math.min(message.length, 60))] = pick(256);
    if (pick(2) === 0) publication.video(message, round * 20);
    else publication.audio(message, round * 20);
  }
  t.true(packets.length > 0);
  const last = new Map<number, number>();
  for (const { track, dts } of packets) {
    // in seconds, for a changed configuration may change the sampling rate
    const time = dts / track.timebase.den;
    t.true(time > (last.get(track.id) ?? -1));
    last.set(track.id, time);
  }
});

test('every audio codec of Enhanced RTMP may be a track, Opus with six channels', (t) => {
  const { publication, tracks, packets } = setUpPublication(t);
  const info = Buffer.from('1200120000025800051b0bb802f00000bb80a316b305f13b13fe767b3d0d068f95bc', 'hex');
  const mapping = { streams: 4, coupled: 2, channels: Buffer.of(0, 4, 1, 2, 3, 5) };
  const opus = { channels: 6, preSkip: 312, inputSamplerate: 48_000, outputGain: 0, mappingFamily: 1, mapping };
  const ac3 = Buffer.concat([Buffer.from('0b7728191e40ebf8', 'hex'), Buffer.alloc(1784)]);
  const eac3 = Buffer.concat([Buffer.from('0b7700bf3287c000', 'hex'), Buffer.alloc(376)]);
  publication.data(said({ audiocodecid: 10, audioTrackIdInfoMap: { 1: {}, 2: {}, 3: {}, 4: {} } }));
  publication.audio(aac().config, 0);
  publication.audio(buildAudioTracks('config', [sound(1, buildFlacHeader(info), 'FLAC')]), 0);
  publication.audio(buildAudioTracks('config', [sound(2, buildOpusHead(opus), 'OPUS')]), 0);
  for (let i = 0; i < 3; i++) {
    publication.audio(buildAudioTag({ codec: 'AAC', packet: 'frame', data: Buffer.of(1, i) }), i * 32);
    publication.audio(buildAudioTracks('frame', [sound(1, Buffer.from('fff85a8800374e00', 'hex'), 'FLAC')]), i * 96);
    publication.audio(buildAudioTracks('frame', [sound(2, Buffer.of(0xf8, 1, 2), 'OPUS')]), i * 20);
    publication.audio(buildAudioTracks('frame', [sound(3, ac3, 'AC3')]), i * 32);
    publication.audio(buildAudioTracks('frame', [sound(4, eac3, 'EAC3')]), i * 32);
  }
  t.deepEqual(
    (tracks.at(-1) as AudioTrack[]).map(({ codec, channels, samplerate }) => [codec, channels, samplerate]),
    [
      ['AAC', 2, 48_000],
      ['FLAC', 2, 48_000],
      ['OPUS', 6, 48_000],
      ['AC3', 6, 48_000],
      ['EAC3', 1, 48_000],
    ],
  );
  const durations = new Map(packets.map(({ track, duration }) => [track.codec, duration]));
  t.deepEqual(Object.fromEntries(durations), { AAC: 1024, FLAC: 4608, OPUS: 960, AC3: 1536, EAC3: 1536 });
});
