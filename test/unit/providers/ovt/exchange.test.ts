import { duplexPair } from 'node:stream';
import test from 'ava';
import { parseAudioSpecificConfig } from '../../../../src/codecs/aac.ts';
import { parseAvcConfig } from '../../../../src/codecs/h264.ts';
import { nalUnits } from '../../../../src/codecs/nal.ts';
import { toDescription } from '../../../../src/protocols/ovt/description.ts';
import { isRequest, readMessage, toResponse, writeMessage } from '../../../../src/protocols/ovt/message.ts';
import { HEADER_BYTES, PAYLOAD } from '../../../../src/protocols/ovt/packet.ts';
import { playlistOf, trackOf } from '../../../../src/protocols/ovt/tracks.ts';
import { parseOvtUrl } from '../../../../src/protocols/ovt/url.ts';
import { OvtClient } from '../../../../src/providers/ovt/client.ts';
import { Recorder, silent } from '../../../support/ovt/ovt.ts';
import { answerAsRecorded, FROM_EDGE, FROM_ORIGIN, packetsOf } from '../../../support/ovt/recorded-origin.ts';
import { until } from '../../../support/time/until.ts';
import { receive } from '../../protocols/ovt/support.ts';

/** With 0 for the clock of the sender. */
function timeless(packet: Buffer): Buffer {
  const copy = Buffer.from(packet);
  copy.fill(0, 4, 12);
  return copy;
}

test('requests of an edge to OvenMediaEngine are read, and written alike', (t) => {
  const { messages, frames, losses } = receive(FROM_EDGE);
  t.deepEqual([frames.length, losses], [0, 0]);
  const requests = messages.map((text) => readMessage(Buffer.from(text)));
  t.true(requests.every(isRequest));
  t.deepEqual(
    requests.map((request) => request?.application),
    ['describe', 'play'],
  );
  t.like(parseOvtUrl(String(requests[0]?.target)), { host: '127.0.0.1', port: 19_001, app: 'app', stream: 'osrc' });
  const written = requests.map((request) => writeMessage(PAYLOAD.request, request as object, 0));
  t.deepEqual(Buffer.concat(written), Buffer.concat(packetsOf(FROM_EDGE).map(timeless)));
});

test('answers of OvenMediaEngine are read, however they are cut', (t) => {
  for (const piece of [1, 7, 1460, FROM_ORIGIN.length]) {
    const { messages, frames, losses } = receive(FROM_ORIGIN, piece);
    t.is(losses, 0);
    const [describe, play] = messages.map((text) => toResponse(readMessage(Buffer.from(text))));
    t.like(describe, { id: 1, application: 'describe', code: 200, message: 'ok' });
    t.deepEqual(play, { id: 2, application: 'play', code: 200, message: 'ok' });
    t.is(frames.length, 262);
    t.is(
      frames.reduce((bytes, { data }) => bytes + data.length, 0),
      FROM_ORIGIN.length - 2 * HEADER_BYTES - 1106 - 55 - 262 * (HEADER_BYTES + 36),
    );
  }
});

test('the description of OvenMediaEngine, whose playlists are null when there are none', (t) => {
  const [describe] = receive(FROM_ORIGIN).messages;
  const { contents } = toResponse(readMessage(Buffer.from(describe ?? '')));
  const { stream } = toDescription(contents);
  t.deepEqual(
    [stream.appName, stream.streamName, stream.playlists?.map(playlistOf)],
    ['#default#app', 'osrc', undefined],
  );
  const [video, audio, data] = stream.tracks.map(trackOf);
  t.like(video, { id: 0, name: 'v', type: 'video', codec: 'H264', bitrate: 195_000, framerate: 30 });
  t.like(audio, { id: 1, name: 'a', type: 'audio', codec: 'AAC', bitrate: 67_000, samplerate: 44_100, channels: 1 });
  t.like(data, { id: 2, name: 'Data', type: 'data', codec: 'ID3v2' });
  t.like(parseAudioSpecificConfig(audio?.type === 'audio' ? (audio.config as Buffer) : Buffer.alloc(0)), {
    samplerate: 44_100,
    channels: 1,
    sbr: false,
  });
});

test('the stream of OvenMediaEngine is taken, from its first key frame on', async (t) => {
  const [stream, far] = duplexPair();
  const asked = answerAsRecorded(far);
  const target = 'ovt://127.0.0.1:19001/app/osrc';
  const client = await OvtClient.connect({ stream, target }, { log: silent });
  t.teardown(() => client.close());
  const recorder = new Recorder();
  await client.play(recorder);
  t.deepEqual(asked.map(timeless), packetsOf(FROM_EDGE).map(timeless), 'asked for as it was then');
  await until('all of it', () => recorder.bytes === FROM_ORIGIN.length - (packetsOf(FROM_ORIGIN)[0]?.length ?? 0));
  t.is(recorder.ended, undefined);
  t.is(recorder.told.length, 1);
  const [{ tracks, playlists }] = recorder.told as [(typeof recorder.told)[0]];
  t.deepEqual(playlists, []);
  const [video, audio, data] = tracks;
  // the height that is described is not that of the picture
  t.like(video, { type: 'video', codec: 'H264', width: 320, height: 180, framerate: 30 });
  t.like(audio, { type: 'audio', codec: 'AAC', samplerate: 44_100, channels: 1, timebase: { num: 1, den: 44_100 } });
  t.like(data, { type: 'data', codec: 'ID3v2' });
  const { sps, pps } = parseAvcConfig(video?.type === 'video' ? (video.config as Buffer) : Buffer.alloc(0));
  t.deepEqual([sps.length, pps.length], [1, 1]);

  const pictures = recorder.of(0);
  t.true(pictures[0]?.key);
  t.deepEqual(
    pictures.flatMap(({ key }, at) => (key ? [at] : [])),
    [0, 30, 60, 90],
  );
  for (const { data: picture, key } of pictures) {
    const types = Array.from(nalUnits(picture, 4), (nal) => (nal[0] as number) & 31);
    t.false(
      types.some((type) => type === 7 || type === 8 || type === 9),
      'no parameter sets, no delimiters',
    );
    t.is(types.includes(5), key !== false);
  }
  const sounds = recorder.of(1);
  t.true(sounds.every(({ duration, data: sound }) => duration === 1024 && sound.readUInt16BE(0) >> 4 !== 0xfff));
  const steps = sounds.slice(1).map(({ dts }, at) => dts - (sounds[at]?.dts ?? 0));
  t.deepEqual(new Set(steps), new Set([1024]), 'the milliseconds of the wire are no gaps');
  t.is(recorder.packets.length, pictures.length + sounds.length);
});
