import { pino } from 'pino';
import test from 'ava';
import type { Track } from '../../../../src/core/track.ts';
import { FaultLog } from '../../../../src/log/log.ts';
import { descriptionOf } from '../../../../src/protocols/ovt/description.ts';
import { BITSTREAM, MEDIA_TYPE, PACKET_TYPE } from '../../../../src/protocols/ovt/enumerations.ts';
import { wireTrack } from '../../../../src/protocols/ovt/tracks.ts';
import { LocalClock } from '../../../../src/providers/intake/local-clock.ts';
import { Intake } from '../../../../src/providers/ovt/intake.ts';
import { trackSource } from '../../../../src/providers/ovt/track-source.ts';
import { Recorder } from '../../../support/ovt/ovt.ts';
import { until } from '../../../support/time/until.ts';
import { audioTrack, dataTrack, videoTrack } from '../../../support/media/packets.ts';
import { box, samples, vector } from '../../codecs/vectors.ts';

/** The intake of a stream, with audio and events if nothing else is said, as OvenMediaEngine describes it. */
function open(tracks: readonly Track[] = [audioTrack({ codec: 'MP2', config: undefined }), dataTrack({ id: 2 })]) {
  const recorder = new Recorder();
  const description = descriptionOf({
    appName: '#default#app',
    streamName: 'live',
    originStreamUUID: 'x',
    playlists: [],
    tracks: tracks.map(wireTrack),
  });
  const faults = new FaultLog(pino({ level: 'silent' }));
  const intake = new Intake(description, recorder, { clock: new LocalClock(), faults, plain: false });
  intake.begin();
  const event = (packetType: number, pts: number, data = 'ID3', bitstream: number = BITSTREAM.id3v2) =>
    intake.frame({
      ...{ track: 2, pts, dts: pts, duration: 0, mediaType: MEDIA_TYPE.data, key: true, bitstream, packetType },
      data: Buffer.from(data),
    });
  /** A frame of audio, of the second 1. */
  const sound = () =>
    intake.frame({
      ...{ track: 1, pts: 48_000, dts: 48_000, duration: 1152, mediaType: MEDIA_TYPE.audio, key: true },
      ...{ bitstream: BITSTREAM.mp2, packetType: PACKET_TYPE.raw, data: Buffer.alloc(100) },
    });
  return { recorder, intake, event, sound, description };
}

test('a track that is described and never comes is not announced, and is added when it comes', async (t) => {
  const { recorder, intake, sound } = open([
    audioTrack({ codec: 'MP2', config: undefined }),
    videoTrack({ codec: 'VP8', config: undefined }),
  ]);
  t.is(recorder.told.length, 0);
  const ids = () => recorder.told.map(({ tracks }) => tracks.map(({ id }) => id));
  await until('the stream', () => {
    sound();
    return recorder.told.length > 0;
  });
  t.deepEqual(ids(), [[1]]);
  t.true(recorder.packets.length > 1);
  const key = Buffer.from('1000009d012a80026801', 'hex');
  intake.frame({
    ...{ track: 0, pts: 180_000, dts: 180_000, duration: 0, mediaType: MEDIA_TYPE.video, key: true },
    ...{ bitstream: BITSTREAM.vp8, packetType: PACKET_TYPE.raw, data: key },
  });
  t.deepEqual(ids()[1]?.toSorted(), [0, 1]);
  t.is(recorder.packets.at(-1)?.track.type, 'video');
});

test('events that belong beside video or audio only are those of tracks with that target', (t) => {
  const { recorder, intake, event, sound, description } = open();
  const { event: all, videoEvent, audioEvent } = PACKET_TYPE;
  sound();
  [all, videoEvent, audioEvent, videoEvent].forEach((type, index) => event(type, 90_000 * (1 + index)));
  t.deepEqual(
    recorder.packets
      .filter(({ track }) => track.type === 'data')
      .map(({ track, pts }) => [track.id, track.type === 'data' && track.target, pts]),
    [
      [2, undefined, 45_000],
      [1024, 'video', 135_000],
      [1025, 'audio', 225_000],
      [1024, 'video', 315_000],
    ],
  );
  t.deepEqual(
    recorder.told.map(({ tracks }) => tracks.map(({ id }) => id)),
    [
      [1, 2],
      [1, 2, 1024],
      [1, 2, 1024, 1025],
    ],
  );
  intake.describe(description);
  event(audioEvent, 450_000);
  t.is(recorder.told.at(-1)?.tracks.at(-1), recorder.packets.at(-1)?.track);
  t.like(recorder.packets.at(-1)?.track, { id: 1024, target: 'audio' });
});

test('no tracks are made of events that are not taken', (t) => {
  const { recorder, event, sound } = open();
  sound();
  recorder.packets.length = 0;
  event(PACKET_TYPE.videoEvent, 0, 'x'.repeat(64_001));
  event(PACKET_TYPE.audioEvent, 0, '{}', BITSTREAM.cue);
  t.deepEqual(recorder.packets, []);
  t.is(recorder.told.length, 1);
});

test('pictures that an origin shows before it decodes them are decoded before, and shown at their times', (t) => {
  const { recorder, intake } = open([videoTrack({ codec: 'VP8', config: undefined })]);
  const key = Buffer.from('1000009d012a80026801', 'hex');
  for (const [i, frames] of [-1, 1, -2, -2, -1, 1, -2, -2].entries()) {
    const dts = 90_000 + 3000 * i;
    const pts = dts + 3000 * frames;
    intake.frame({
      ...{ track: 0, pts, dts, duration: 0, mediaType: MEDIA_TYPE.video, key: i % 4 === 0, bitstream: BITSTREAM.vp8 },
      ...{ packetType: PACKET_TYPE.raw, data: i % 4 === 0 ? key : Buffer.of(0x11, 0, 0) },
    });
  }
  const { packets } = recorder;
  const [first] = packets.map(({ pts }) => pts);
  t.deepEqual(
    packets.map(({ pts }) => Math.round((pts - Number(first)) / 3000)),
    [0, 3, 1, 2, 4, 7, 5, 6],
  );
  for (const [i, { dts, pts }] of packets.entries())
    t.true(dts <= pts && (i === 0 || dts > Number(packets[i - 1]?.dts)));
});

test('G.711 has the rate and the channels that its origin describes', (t) => {
  const timebase = { num: 1, den: 16_000 };
  const { recorder, intake } = open([
    audioTrack({ codec: 'PCMU', config: undefined, samplerate: 16_000, channels: 2, timebase }),
  ]);
  const { id } = audioTrack();
  for (const pts of [0, 320, 640])
    intake.frame({
      ...{ track: id, pts, dts: pts, duration: 320, mediaType: MEDIA_TYPE.audio, key: true },
      ...{ bitstream: BITSTREAM.pcmu, packetType: PACKET_TYPE.raw, data: Buffer.alloc(640) },
    });
  const [first] = recorder.packets;
  t.like(first?.track, { codec: 'PCMU', samplerate: 16_000, channels: 2, timebase });
  t.deepEqual(
    recorder.packets.map(({ dts, duration }) => [dts - (first?.dts ?? 0), duration]),
    [
      [0, 320],
      [320, 320],
      [640, 320],
    ],
  );
});

test('frames of a node of the cluster show which of its key frames are IDR pictures', (t) => {
  const config = box(vector('h264-open-gop.mp4'), 'avcC');
  const source = trackSource(videoTrack({ config }), true);
  const keys = samples(vector('h264-open-gop.mp4')).flatMap((data, i) => {
    const head = { track: 0, pts: i, dts: i, duration: 0, mediaType: MEDIA_TYPE.video, bitstream: BITSTREAM.avcc };
    const key = [0, 5, 13].includes(i);
    return source.units({ ...head, key, packetType: PACKET_TYPE.nalUnits, data }).map((unit) => unit.key);
  });
  t.deepEqual(
    keys.flatMap((key, i) => (key === false ? [] : [[i, key]])),
    [
      [0, true],
      [5, 'open'],
      [13, 'open'],
    ],
  );
});
