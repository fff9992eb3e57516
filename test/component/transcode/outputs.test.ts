import test from 'ava';
import { Registry } from '../../../src/core/registry.ts';
import type { OutputStream } from '../../../src/core/output-stream.ts';
import { createLogger } from '../../../src/log/log.ts';
import { VIDEO_TIMEBASE } from '../../../src/core/timebase.ts';
import type { DataTrack } from '../../../src/core/track.ts';
import { CodecInventory } from '../../../src/transcode/codecs.ts';
import { attachOutputs } from '../../../src/transcode/outputs.ts';
import { AUDIO, RTMP, Sink, VIDEO, audio, vhostConfig, video } from '../../unit/core/support.ts';

const log = createLogger('silent');

const bypass = (name: string, outputStreamName = '${OriginStreamName}') => ({
  name,
  outputStreamName,
  encodes: { videos: [{ name: 'picture', bypass: true }], audios: [{ name: 'sound', bypass: true }] },
});

/** An application with these output profiles; `outputs` are those announced to publishers. */
function start(outputProfile: object[]) {
  const registry = new Registry();
  const outputs: OutputStream[] = [];
  const alerts: string[] = [];
  registry.on('alert', ({ messages }) => {
    for (const { code, description } of messages) alerts.push(`${code} ${description}`);
  });
  registry.on('input', (input, application) =>
    attachOutputs(input, application, { log, inventory: new CodecInventory({ log }), folder: '.' }),
  );
  registry.on('output', (output) => outputs.push(output));
  const applications = [
    { name: 'app', type: 'live', providers: {}, publishers: {}, outputProfiles: { outputProfile } },
  ];
  registry.createVhost(vhostConfig({ name: 'default', host: { names: ['*'] }, applications }), true);
  const application = registry.vhost('default').application('app');
  const publish = (name = 'live') => application.publish(name, RTMP, { replace: true, maxConnections: 0 });
  return { outputs, alerts, application, publish };
}

test("a profile makes an output stream whose packets are the input's, under output tracks", (t) => {
  const { outputs, publish } = start([bypass('p', '${OriginStreamName}_o')]);
  const input = publish();
  input.setTracks([VIDEO, AUDIO]);
  const [output] = outputs as [OutputStream];
  t.is(output.name, 'live_o');
  t.deepEqual(
    output.tracks.map(({ id, name, bypass: passed }) => [id, name, passed]),
    [
      [0, 'picture', true],
      [1, 'sound', true],
    ],
  );
  const sink = new Sink();
  output.read(sink);
  const [picture, sound] = [video(0, true), audio(0)];
  input.write(picture);
  input.write(sound);
  t.deepEqual(
    sink.packets.map(({ track }) => track),
    [...output.tracks],
  );
  t.is(sink.packets[0]?.data, picture.data, 'the bytes are the same, not a copy');
  t.like(sink.packets[1], { dts: sound.dts, pts: sound.pts, duration: sound.duration, key: true });
});

test('profiles work side by side; two that want one name: the first has it', (t) => {
  const { outputs, alerts, publish } = start([bypass('a'), bypass('b'), bypass('c', '${OriginStreamName}_c')]);
  const input = publish();
  input.setTracks([VIDEO]);
  input.setTracks([VIDEO, AUDIO]);
  t.deepEqual(
    outputs.map(({ name }) => name),
    ['live', 'live_c'],
  );
  t.deepEqual(alerts, [
    'EGRESS_STREAM_CREATION_FAILED output profile b makes no output stream live: Stream already exists',
  ]);
});

test('a track that changes its configuration keeps its output id; the others keep their very track', (t) => {
  const { outputs, publish } = start([bypass('p')]);
  const input = publish();
  input.setTracks([VIDEO, AUDIO]);
  const [output] = outputs as [OutputStream];
  const [before, sound] = output.tracks;
  const larger = { ...VIDEO, width: 1920, height: 1080 };
  input.setTracks([larger, AUDIO]);
  const [after, same] = output.tracks;
  t.is(after?.id, before?.id);
  t.like(after, { width: 1920, height: 1080 });
  t.is(same, sound);
  t.is(output.measured(0)?.configChangeCount, 1);
  t.is(output.measured(1)?.configChangeCount, 0);
});

test('an output begins when the first track that it can carry comes', (t) => {
  const { outputs, publish } = start([
    { name: 'p', outputStreamName: 'o', encodes: { audios: [{ name: 'sound', bypass: true }] } },
  ]);
  const input = publish();
  input.setTracks([VIDEO]);
  t.is(outputs.length, 0);
  input.setTracks([VIDEO, AUDIO]);
  t.is(outputs.length, 1);
  t.deepEqual(
    outputs[0]?.tracks.map(({ name }) => name),
    ['sound'],
  );
});

test('an output whose tracks all went and came back is announced once', (t) => {
  const encode = { name: 'v', codec: 'h264', bitrate: 1_000_000, bypassIfMatch: { codec: 'eq' } };
  const { outputs, publish } = start([{ name: 'p', outputStreamName: 'o', encodes: { videos: [encode] } }]);
  const input = publish();
  input.setTracks([VIDEO]);
  input.setTracks([{ ...VIDEO, codec: 'H265' }]);
  t.deepEqual(outputs[0]?.tracks, []);
  input.setTracks([{ ...VIDEO }]);
  t.is(outputs.length, 1);
  t.is(outputs[0]?.tracks.length, 1);
});

test('outputs end with their input and free their name', (t) => {
  const { outputs, application, publish } = start([bypass('p')]);
  const input = publish();
  input.setTracks([VIDEO]);
  const sink = new Sink();
  outputs[0]?.read(sink);
  input.close('gone');
  t.deepEqual(sink.reasons, ['gone']);
  t.is(application.outputs.size, 0);
  publish().setTracks([VIDEO]);
  t.is(outputs.length, 2);
});

const EVENTS: DataTrack = {
  id: 600,
  name: 'Data',
  type: 'data',
  codec: 'ID3v2',
  timebase: VIDEO_TIMEBASE,
  bypass: false,
};

test('events pass every profile, and make no output stream of their own', (t) => {
  const { outputs, publish } = start([
    bypass('a', 'a'),
    { ...bypass('b', 'b'), encodes: { audios: [{ name: 'sound', bypass: true }] } },
  ]);
  const input = publish();
  input.setTracks([EVENTS, VIDEO]);
  t.deepEqual(
    outputs.map(({ name }) => name),
    ['a'],
  );
  input.setTracks([EVENTS, VIDEO, AUDIO]);
  const sinks = outputs.map((output) => {
    const sink = new Sink();
    output.read(sink);
    return sink;
  });
  input.write({ track: EVENTS, dts: 9, pts: 10, duration: 0, key: true, data: Buffer.from('tag') });
  t.false(input.inject('CUE', Buffer.from('{}')));
  input.write(video(1, true));
  t.true(input.inject('CUE', Buffer.from('{}')));
  t.deepEqual(
    outputs.map(({ tracks }) => tracks.map(({ id, type, codec }) => [id, type, codec])),
    [
      [
        [0, 'video', 'H264'],
        [1, 'audio', 'AAC'],
        [1024, 'data', 'ID3v2'],
        [1025, 'data', 'CUE'],
      ],
      [
        [0, 'audio', 'AAC'],
        [1024, 'data', 'ID3v2'],
        [1025, 'data', 'CUE'],
      ],
    ],
  );
  for (const { packets } of sinks) {
    const events = packets.filter(({ track }) => track.type === 'data');
    t.deepEqual(
      events.map(({ track, pts, data }) => [track.id, pts, data.toString()]),
      [
        [1024, 10, 'tag'],
        [1025, 90_000, '{}'],
      ],
    );
  }
  input.setTracks([EVENTS]);
  t.deepEqual(
    outputs.map(({ tracks }) => tracks),
    [[], []],
  );
});
