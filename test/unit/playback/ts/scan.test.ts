import test from 'ava';
import { buildOpusConfig } from '../../../../src/codecs/opus.ts';
import type { Packet } from '../../../../src/core/packet.ts';
import type { MediaTrack, Track } from '../../../../src/core/track.ts';
import { ClipError } from '../../../../src/playback/clip/error.ts';
import { openMp4, type RecordedMp4 } from '../../../../src/playback/clip/recording.ts';
import { loadSamples, SampleCursor } from '../../../../src/playback/clip/samples.ts';
import { TsPartSource } from '../../../../src/playback/ts/part.ts';
import { scanTs } from '../../../../src/playback/ts/scan.ts';
import { h264Pps, h264Slice } from '../../../support/media/nal-build.ts';
import {
  audioPackets,
  audioTrack,
  AVC_HIGH,
  dataTrack,
  eventPacket,
  interleaved,
  videoPackets,
  videoTrack,
} from '../../../support/media/packets.ts';
import { MemoryFile, recordedBytes } from '../../../support/recording/recorded-mp4.ts';
import { distinct, recordedTs } from '../../../support/recording/recorded-ts.ts';
import { parseAvcConfig } from '../../../../src/codecs/h264.ts';
import { joinNals } from '../../../../src/codecs/nal.ts';
import { spliceInsert } from '../../../support/media/splice.ts';
import { box, seeded, vector } from '../../codecs/vectors.ts';

const VIDEO = videoTrack();
const AUDIO = audioTrack();
const HEVC = videoTrack({ codec: 'H265', width: 1920, height: 1080, config: box(vector('h265-main.mp4'), 'hvcC') });
const CD_AUDIO = audioTrack({
  timebase: { num: 1, den: 44_100 },
  samplerate: 44_100,
  config: Buffer.from('1210', 'hex'),
});
const OPUS = audioTrack({
  codec: 'OPUS',
  config: buildOpusConfig({
    ...{ channels: 2, preSkip: 0, inputSamplerate: 48_000, outputGain: 0 },
    ...{ mappingFamily: 0, mapping: undefined },
  }),
});
const { config: _, ...unconfigured } = AUDIO;
const MP3: MediaTrack = { ...unconfigured, codec: 'MP3' };
const TICKS = 2 ** 33;

/** Presentation times of a hierarchy of B-frames, in frames after their decode times. */
const REORDER = [1, 3, 0, 0];

function reordered(packets: readonly Packet[]): Packet[] {
  return packets.map((packet, index) => ({ ...packet, pts: packet.dts + 3000 * (REORDER[index % 4] as number) }));
}

/** Audio frames of a codec whose data tells their duration. */
function framed(track: MediaTrack, samples: number, head: string, bytes: number): Packet[] {
  return Array.from({ length: 200 }, (_, index) => {
    const data = Buffer.alloc(bytes, 0x40 + (index % 32));
    Buffer.from(head, 'hex').copy(data);
    const dts = 480_000 + index * samples;
    return { track, dts, pts: dts, duration: 0, key: true, data };
  });
}

async function samplesOf(recording: RecordedMp4) {
  const tracks = [];
  for (const track of recording.tracks) {
    const found = [];
    const cursor = new SampleCursor(await loadSamples(track, 0, track.samples));
    while (cursor.next()) {
      const data = await recording.source.read(cursor.at, cursor.size);
      const { duration, offset, key } = cursor;
      found.push({
        time: Math.round((cursor.dts + track.shift - recording.begin * track.timescale) / (track.timescale / 1000)),
        ...{ duration, offset, key, data: data.toString('latin1') },
      });
    }
    tracks.push(found);
  }
  return tracks;
}

/** The parts of a file as MP4 recordings. */
async function partsOf(bytes: Buffer) {
  const file = new MemoryFile(bytes);
  const parts = await scanTs(file);
  return await Promise.all(
    parts.map(async (part) => ({ part, recording: await openMp4(new TsPartSource(file, part)) })),
  );
}

const [video, audio] = [videoPackets(VIDEO, { from: 10, to: 30, gop: 60 }), audioPackets(AUDIO, { from: 10, to: 30 })];

const STREAMS: Readonly<Record<string, readonly [tracks: readonly MediaTrack[], packets: readonly Packet[]]>> = {
  'H.264 and AAC': [[VIDEO, AUDIO], interleaved(video, audio)],
  'B-frames, and audio that is later': [
    [VIDEO, AUDIO],
    interleaved(reordered(video), audioPackets(AUDIO, { from: 10.5, to: 29 })),
  ],
  'H.265 and AAC of 44.1 kHz': [
    [HEVC, CD_AUDIO],
    interleaved(videoPackets(HEVC, { from: 10, to: 20 }), audioPackets(CD_AUDIO, { from: 10, to: 20 })),
  ],
  'video, all of it key frames': [[VIDEO], videoPackets(VIDEO, { from: 10, to: 15, gop: 1 })],
  'audio alone': [[AUDIO], audio],
  'two tracks of audio': [
    [VIDEO, AUDIO, audioTrack({ id: 2, name: 'second', language: 'fra' })],
    interleaved(
      video,
      audio,
      audioPackets(audioTrack({ id: 2, name: 'second', language: 'fra' }), { from: 10, to: 30 }),
    ),
  ],
};

for (const [name, [tracks, plain]] of Object.entries(STREAMS))
  test(`an MPEG-TS file has the samples of an MP4 file: ${name}`, async (t) => {
    const packets = distinct(plain);
    const [found, ...more] = await partsOf(recordedTs(tracks, packets));
    t.deepEqual(more, []);
    const wanted = await openMp4(new MemoryFile(recordedBytes(tracks, packets)));
    const formats = ({ tracks: all }: RecordedMp4) => all.map(({ format }) => format.toString('hex'));
    t.deepEqual(formats(found!.recording), formats(wanted));
    t.deepEqual(await samplesOf(found!.recording), await samplesOf(wanted));
    t.is(found!.part.begin, 0);
  });

for (const [track, samples, head, bytes] of [
  [MP3, 1152, 'fffb9464', 384],
  [OPUS, 960, 'fc', 90],
] as const)
  test(`an MPEG-TS file has the samples of an MP4 file: ${track.codec}`, async (t) => {
    const packets = framed(track, samples, head, bytes);
    const [found] = await partsOf(recordedTs([track], packets));
    const wanted = await openMp4(new MemoryFile(recordedBytes([track], packets)));
    t.deepEqual(found!.recording.leader.format, wanted.leader.format);
    t.deepEqual(await samplesOf(found!.recording), await samplesOf(wanted));
  });

test('times of an MPEG-TS file go on where they wrap', async (t) => {
  const packets = distinct(interleaved(reordered(video), audio));
  const origin = { time: 10 * 90_000 - (TICKS - 10 * 90_000), timebase: VIDEO.timebase };
  const [found, ...more] = await partsOf(recordedTs([VIDEO, AUDIO], packets, origin));
  t.deepEqual(more, []);
  t.deepEqual(
    await samplesOf(found!.recording),
    await samplesOf(await openMp4(new MemoryFile(recordedBytes([VIDEO, AUDIO], packets)))),
  );
});

test('events in an MPEG-TS file are left out', async (t) => {
  const tracks: Track[] = [VIDEO, AUDIO, dataTrack(), dataTrack({ id: 1025, codec: 'SCTE35' })];
  const media = distinct(interleaved(video, audio));
  const events = [12, 14, 20].flatMap((second) => [
    eventPacket(tracks[2] as never, second * 90_000, Buffer.from('4944330400000000000a54585858000000000000', 'hex')),
    eventPacket(tracks[3] as never, second * 90_000, spliceInsert({ eventId: second, out: true })),
  ]);
  const [found] = await partsOf(recordedTs(tracks, interleaved(media, events)));
  const [plain] = await partsOf(recordedTs([VIDEO, AUDIO], media));
  t.deepEqual(await samplesOf(found!.recording), await samplesOf(plain!.recording));
});

test('a part of an MPEG-TS file ends at the key frame where the format of its video changes', async (t) => {
  const changed = videoTrack({ config: AVC_HIGH, width: 1280, height: 720 });
  const packets = distinct(
    interleaved(
      [...video.filter(({ dts }) => dts < 1_800_000), ...videoPackets(changed, { from: 20, to: 30, gop: 60 })],
      audio,
    ),
  );
  const found = await partsOf(recordedTs([VIDEO, AUDIO], packets));
  t.deepEqual(
    found.map(({ part: { begin }, recording: { leader } }) => [begin, leader.samples, leader.description]),
    [
      [0, 300, { type: 'video', codec: 'H264', config: VIDEO.config, width: 640, height: 360 }],
      [10, 300, { type: 'video', codec: 'H264', config: AVC_HIGH, width: 1280, height: 720 }],
    ] as never,
  );
  t.is(
    found.reduce((sum, { recording }) => sum + (recording.tracks[1]?.samples ?? 0), 0),
    audio.length,
  );
});

test('audio of another format is left out until the key frame with which a part begins', async (t) => {
  const mono = audioTrack({ config: Buffer.from('1188', 'hex'), channels: 1 });
  const packets = distinct(
    interleaved(
      video,
      audio.map((packet) => (packet.dts < 15 * 48_000 ? packet : { ...packet, track: mono })),
    ),
  );
  const found = await partsOf(recordedTs([VIDEO, AUDIO], packets));
  t.deepEqual(
    found.map(({ part: { begin }, recording: { tracks } }) => [begin, tracks.map(({ samples }) => samples)]),
    [
      [0, [180, 235]],
      [6, [420, 659]],
    ],
  );
  const data = async (index: number) => (await samplesOf(found[index]!.recording)).flat().map((one) => one.data);
  const sent = new Set(packets.map((packet) => packet.data.toString('latin1')));
  for (const index of [0, 1]) for (const one of await data(index)) t.true(sent.has(one));
});

test('parameter sets that the configuration lacks stay in the samples', async (t) => {
  const { sps } = parseAvcConfig(VIDEO.config as Buffer);
  const inBand = videoTrack({ inBandSets: true });
  const packets = Array.from({ length: 300 }, (_, index): Packet => {
    const key = index % 30 === 0;
    const picture = h264Slice({ idr: key, frame: key ? 0 : index % 16, bytes: 40 + (index % 50) });
    // the last three have the sets of the configuration again
    const pps = index < 240 ? h264Pps(0, 0, 3) : parseAvcConfig(VIDEO.config as Buffer).pps[0];
    const sets = key && index >= 90 ? [...sps, pps as Buffer] : [];
    const track = index < 90 ? VIDEO : inBand;
    return { track, dts: index * 3000, pts: index * 3000, duration: 0, key, data: joinNals([...sets, picture]) };
  });
  const [found, ...more] = await partsOf(recordedTs([VIDEO], packets));
  t.deepEqual(more, []);
  const wanted = await openMp4(new MemoryFile(recordedBytes([VIDEO], packets)));
  t.deepEqual(found!.recording.leader.description, wanted.leader.description);
  t.deepEqual(await samplesOf(found!.recording), await samplesOf(wanted));
});

test('what is no MPEG-TS recording that MP4 can carry has a clear error', async (t) => {
  const refused = async (bytes: Buffer): Promise<[string, string]> => {
    const { fault, message } = (await t.throwsAsync(scanTs(new MemoryFile(bytes)), {
      instanceOf: ClipError,
    })) as ClipError;
    return [fault, message];
  };
  const bytes = recordedTs([VIDEO, AUDIO], distinct(interleaved(video, audio)));
  t.deepEqual(await refused(Buffer.alloc(0)), ['damaged', 'the MPEG-TS file is damaged: it has no transport packet']);
  t.deepEqual(await refused(Buffer.alloc(1000)), [
    'damaged',
    'the MPEG-TS file is damaged: no transport packet is at byte 0',
  ]);
  t.deepEqual(await refused(bytes.subarray(1)), [
    'damaged',
    'the MPEG-TS file is damaged: no transport packet is at byte 0',
  ]);
  const hole = Buffer.concat([bytes.subarray(0, 18_800), bytes.subarray(18_900)]);
  t.deepEqual(await refused(hole), ['damaged', 'the MPEG-TS file is damaged: no transport packet is at byte 18800']);
  t.deepEqual(await refused(bytes.subarray(0, 376)), ['empty', 'the MPEG-TS file has no frames']);
  t.deepEqual(await refused(bytes.subarray(0, 188)), [
    'damaged',
    'the MPEG-TS file is damaged: it has no audio and no video',
  ]);
  const mp2 = audioTrack({ codec: 'MP2' });
  t.deepEqual(await refused(recordedTs([mp2], framed(mp2, 1152, 'fffd8464', 384))), [
    'unsupported',
    'MP4 does not carry the streams of the MPEG-TS file: MPEG audio',
  ]);
  // packets of frames among each other
  const packets = Array.from({ length: bytes.length / 188 }, (_, index) =>
    bytes.subarray(index * 188, (index + 1) * 188),
  );
  const mixed = packets.map((_, index) => packets[index < 40 ? index : index ^ 1] as Buffer);
  const [fault] = await refused(Buffer.concat(mixed));
  t.is(fault, 'unsupported');
});

test('an MPEG-TS file that is cut off or changed has an error, or frames that can be read', async (t) => {
  const random = seeded(5);
  const span = { from: 10, to: 13 };
  const packets = interleaved(reordered(videoPackets(VIDEO, span)), audioPackets(AUDIO, span));
  const bytes = recordedTs([VIDEO, AUDIO], distinct(packets));
  let played = 0;
  for (let round = 0; round < 150; round++) {
    const copy = Buffer.from(bytes.subarray(0, round % 3 === 0 ? Math.floor(random() * bytes.length) : bytes.length));
    const changes = round % 3 === 1 ? 1 + Math.floor(random() * 5) : 0;
    for (let change = 0; change < changes; change++)
      copy[Math.floor(random() * copy.length)] = Math.floor(random() * 256);
    if (round % 3 === 2) {
      // a packet is lost, or comes twice
      const at = Math.floor((random() * copy.length) / 188) * 188;
      copy.copyWithin(at, at + 188 * (random() < 0.5 ? 1 : -1));
    }
    try {
      const file = new MemoryFile(copy);
      for (const part of await scanTs(file)) {
        const source = new TsPartSource(file, part);
        t.is((await source.read(0, source.size)).length, source.size);
        await openMp4(source);
        played++;
      }
    } catch (error) {
      if (!(error instanceof ClipError)) throw error;
    }
  }
  t.true(played > 75, `${played}`);
});

test('random bytes are no MPEG-TS file', async (t) => {
  const random = seeded(6);
  for (let round = 0; round < 200; round++) {
    const bytes = Buffer.from(Array.from({ length: 188 * 20 }, () => Math.floor(random() * 256)));
    // as long as packets seem to be there
    for (let at = 0; at < bytes.length; at += 188) bytes[at] = 0x47;
    await t.throwsAsync(scanTs(new MemoryFile(bytes)), { instanceOf: ClipError });
  }
});
