import test from 'ava';
import { Counters, Flow } from '../../../src/core/counters.ts';
import type { Reader } from '../../../src/core/reader.ts';
import type { Session } from '../../../src/core/session.ts';
import { InputStream } from '../../../src/core/input-stream.ts';
import type { OutputStream } from '../../../src/core/output-stream.ts';
import type { Track } from '../../../src/core/track.ts';
import { AUDIO, audio, RTMP, Sink, VIDEO, video } from './support.ts';

const openInput = (parent = new Counters()) => new InputStream('live', RTMP, parent);

function session(id: string): Session {
  return { id, kind: 'webrtc', createdTime: 0, out: new Flow(0), kick: () => {} };
}

test("every reader gets every packet, the same object, in the writer's turn", (t) => {
  const stream = openInput();
  stream.setTracks([VIDEO, AUDIO]);
  const sinks = [new Sink(), new Sink()];
  for (const sink of sinks) stream.read(sink);
  const packets = [video(0, true), audio(0), video(0.04, false)];
  for (const packet of packets) stream.write(packet);
  for (const sink of sinks) t.deepEqual(sink.packets, packets);
  t.is(sinks[0]?.packets[0], packets[0]);
  t.is(stream.readers, 2);
});

test('a slow reader drops to a key frame and holds up no other', (t) => {
  const stream = openInput();
  stream.setTracks([VIDEO]);
  const [slow, quick] = [new Sink(), new Sink()];
  slow.open = false;
  const reader = stream.read(slow, { bytes: 500, seconds: 60 });
  stream.read(quick);
  for (let i = 0; i < 30; i++) stream.write(video(i / 10, i % 10 === 0));
  t.is(quick.packets.length, 30);
  t.is(slow.packets.length, 1);
  slow.open = true;
  reader.resume();
  stream.write(video(3, true));
  stream.write(video(3.1, false));
  const resumed = slow.packets.slice(1);
  t.true(resumed[0]?.key);
  t.is(reader.dropped + slow.packets.length, 32);
  t.is(quick.packets.length, 32);
});

test('readers that come and go during a write', (t) => {
  const stream = openInput();
  stream.setTracks([VIDEO]);
  const late = new Sink();
  const last = new Sink();
  let own: Reader | undefined;
  let calls = 0;
  own = stream.read({
    packet: () => {
      calls++;
      stream.read(late);
      own?.close();
    },
  });
  stream.read(last);
  stream.write(video(0, true));
  t.is(late.packets.length, 0, 'a reader begins with the next packet');
  t.is(last.packets.length, 1, 'one that goes takes nothing from the others');
  stream.write(video(0.04, false));
  t.deepEqual([calls, late.packets.length, last.packets.length], [1, 1, 2]);
});

test('a slow reader does not wait for a key frame when the video is gone', (t) => {
  const stream = openInput();
  stream.setTracks([VIDEO, AUDIO]);
  const sink = new Sink();
  sink.open = false;
  const reader = stream.read(sink, { bytes: 150, seconds: 60 });
  for (let i = 0; i < 3; i++) stream.write(video(i / 10, i === 0));
  sink.open = true;
  reader.resume();
  stream.write(audio(0.3));
  t.is(sink.packets.length, 1);
  stream.setTracks([AUDIO]);
  stream.write(audio(0.4));
  t.is(sink.packets.length, 2);
});

test('a stream that is closed by a reader during a write', (t) => {
  const stream = openInput();
  stream.setTracks([VIDEO]);
  stream.read({ packet: () => stream.close('enough') });
  const sink = new Sink();
  stream.read(sink);
  stream.write(video(0, true));
  t.deepEqual([sink.packets.length, sink.reasons], [0, ['enough']]);
});

test('a change of configuration is a new track with the same id', (t) => {
  const stream = openInput();
  const heard: number[] = [];
  stream.on('tracks', (tracks) => heard.push(tracks.length));
  stream.setTracks([VIDEO, AUDIO]);
  stream.write(video(0, true));
  const changed = { ...VIDEO, width: 640 };
  stream.setTracks([changed, AUDIO]);
  stream.write(video(0.04, true, 100, changed));
  t.deepEqual(heard, [2, 2]);
  t.is(stream.tracks[0], changed);
  t.like(stream.measured(0), { configChangeCount: 1, maxWidth: 1280 });
  t.is(stream.measured(1)?.configChangeCount, 0, 'the same object is no change');
  t.true(Object.isFrozen(stream.tracks));
});

test('metadata of a track may change without a change of its configuration', (t) => {
  const stream = openInput();
  stream.setTracks([VIDEO, { ...AUDIO, config: Buffer.of(0x11, 0x90) }]);
  const said = { ...AUDIO, config: Buffer.of(0x11, 0x90), language: 'kor', bitrate: 96_000 };
  stream.setTracks([{ ...VIDEO, bitrate: 1 }, said]);
  t.deepEqual(
    [0, 1].map((id) => stream.measured(id)?.configChangeCount),
    [0, 0],
  );
  t.is(stream.tracks[1], said);
  for (const changed of [
    { ...said, config: Buffer.of(0x12, 0x10) },
    { ...said, codec: 'OPUS' as const },
    { ...said, channels: 1 },
    { ...said, timebase: { num: 1, den: 44_100 } },
  ]) {
    stream.setTracks([VIDEO, said]);
    const before = stream.measured(1)?.configChangeCount as number;
    stream.setTracks([VIDEO, changed]);
    t.is(stream.measured(1)?.configChangeCount, before + 1);
  }
});

test('a track that leaves takes its measurement along', (t) => {
  const stream = openInput();
  stream.setTracks([VIDEO, AUDIO]);
  stream.setTracks([AUDIO]);
  t.is(stream.measured(0), undefined);
  t.notThrows(() => stream.write(video(0, true)));
  stream.setTracks([VIDEO, AUDIO]);
  t.is(stream.measured(0)?.configChangeCount, 0);
});

test('a closed stream takes and gives nothing', (t) => {
  const stream = openInput();
  const reasons: string[] = [];
  stream.on('close', (reason) => reasons.push(reason));
  const early = new Sink();
  stream.read(early);
  stream.close('source gone');
  stream.close('again');
  stream.setTracks([VIDEO]);
  stream.write(video(0, true));
  const late = new Sink();
  stream.read(late);
  t.deepEqual(reasons, ['source gone']);
  t.deepEqual(early.reasons, ['source gone']);
  t.deepEqual(late.reasons, ['the stream has ended']);
  t.is(stream.tracks.length, 0);
  t.is(stream.readers, 0);
  t.is(stream.listenerCount('close'), 0);
});

test('outputs end with their input, first', (t) => {
  const input = openInput();
  const order: string[] = [];
  const output = input.addOutput('live_out');
  const sink = new Sink();
  output.read(sink);
  output.on('close', (reason) => order.push(`output: ${reason}, input closed: ${input.closed}`));
  input.on('close', (reason) => order.push(`input: ${reason}`));
  input.close('done');
  t.deepEqual(order, ['output: done, input closed: true', 'input: done']);
  t.deepEqual(sink.reasons, ['done']);
  t.is(input.outputs.size, 0);
});

test('an output that ends leaves its input alone', (t) => {
  const input = openInput();
  const output = input.addOutput('live_out');
  t.is(input.outputs.get('live_out'), output);
  output.close('no longer');
  t.is(input.outputs.size, 0);
  t.false(input.closed);
});

test('sessions are listed and counted until they leave', (t) => {
  const application = new Counters();
  const output: OutputStream = openInput(application).addOutput('live');
  const leave = output.addSession(session('a'));
  output.addSession(session('b'));
  t.deepEqual([...output.sessions.keys()], ['a', 'b']);
  t.is(application.publishers.webrtc, 2);
  leave();
  leave();
  t.deepEqual([...output.sessions.keys()], ['b']);
  t.is(application.totalConnections, 1);
});

test('a session that took the id of another stays when the other leaves', (t) => {
  const output = openInput().addOutput('live');
  const leave = output.addSession(session('a'));
  const second = session('a');
  output.addSession(second);
  leave();
  t.is(output.sessions.get('a'), second);
  t.is(output.counters.totalConnections, 1);
});

test('sessions leave with their stream, once', (t) => {
  const application = new Counters();
  const input = openInput(application);
  const output = input.addOutput('live');
  const leave = output.addSession(session('a'));
  input.close('gone');
  t.is(output.sessions.size, 0);
  t.is(application.totalConnections, 0);
  leave();
  output.addSession(session('b'))();
  t.deepEqual([application.totalConnections, application.maxTotalConnections], [0, 1]);
});

test('a consumer that throws is detached and reported; the writer and the other readers go on', (t) => {
  const input = openInput();
  input.setTracks([VIDEO]);
  const faults: unknown[] = [];
  input.on('fault', (error) => faults.push(error));
  const ended: string[] = [];
  const broken = {
    packet: () => {
      throw new Error('broken');
    },
    close: (reason: string) => ended.push(reason),
  };
  input.read(broken);
  const sink = new Sink();
  input.read(sink);
  input.write(video(0, true));
  input.write(video(0.04, false));
  t.is(sink.packets.length, 2);
  t.deepEqual(
    faults.map((fault) => (fault as Error).message),
    ['broken'],
  );
  t.deepEqual(ended, ['it failed on a packet']);
  t.is(input.readers, 1);
});

test('a stream ends whole when a reader fails at its end', (t) => {
  const input = openInput();
  const output = input.addOutput('out');
  const broken = {
    packet: () => {
      throw new Error('no packet');
    },
    close: () => {
      throw new Error('no end');
    },
  };
  const faults: string[] = [];
  const ends: string[] = [];
  const sinks = [input, output].map((stream) => {
    stream.on('fault', (error) => faults.push((error as Error).message));
    stream.on('close', () => ends.push(stream.name));
    stream.setTracks([VIDEO]);
    stream.read(broken);
    const sink = new Sink();
    stream.read(sink);
    return sink;
  });
  input.write(video(0, true));
  t.deepEqual(faults, ['no end', 'no packet']);
  input.read(broken);
  input.close('gone');
  t.deepEqual(ends, ['out', 'live']);
  t.deepEqual(
    sinks.map(({ reasons }) => reasons),
    [['gone'], ['gone']],
  );
  t.deepEqual(faults.slice(2), ['no end', 'no end']);
});

test('playlists by the name that clients ask for', (t) => {
  const output = openInput().addOutput('live');
  const options = {
    webrtcAutoAbr: true,
    webrtcAudioOnlyFallback: false,
    hlsChunklistPathDepth: 0,
    enableTsPackaging: false,
  };
  output.addPlaylist({ name: 'Low latency', fileName: 'abr', options, renditions: [] });
  output.addPlaylist({ name: 'Master', fileName: 'master', options, renditions: [] });
  t.is(output.playlist('master')?.name, 'Master');
  t.is(output.playlist('other'), undefined);
  t.is(output.playlists.length, 2);
});

test('an event gets a data track of its kind, and the time of the media that arrived last', (t) => {
  const stream = openInput();
  stream.setTracks([VIDEO, AUDIO]);
  const sink = new Sink();
  stream.read(sink);
  t.false(stream.inject('ID3v2', Buffer.from('early')), 'there is no time yet');
  t.is(stream.tracks.length, 2);
  stream.write(video(7, true));
  t.true(stream.inject('ID3v2', Buffer.from('first')));
  t.true(stream.inject('ID3v2', Buffer.from('second')));
  t.true(stream.inject('ID3v2', Buffer.from('beside video'), 'video'));
  t.true(stream.inject('CUE', Buffer.from('{}')));
  const events = sink.packets.filter(({ track }) => track.type === 'data');
  t.deepEqual(
    events.map(({ data }) => data.toString()),
    ['first', 'second', 'beside video', '{}'],
  );
  t.is(new Set(events.map(({ track }) => track.id)).size, 3);
  t.deepEqual(new Set(events.map(({ pts }) => pts)), new Set([7 * 90_000]));
});

test('data tracks of injected events stay when the source changes its tracks', (t) => {
  const stream = openInput();
  stream.setTracks([VIDEO]);
  stream.write(video(0, true));
  stream.inject('ID3v2', Buffer.from('tag'));
  const [, events] = stream.tracks;
  stream.setTracks([VIDEO, AUDIO]);
  t.deepEqual(stream.tracks, [VIDEO, AUDIO, events]);
  stream.inject('ID3v2', Buffer.from('tag'));
  t.deepEqual(stream.tracks, [VIDEO, AUDIO, events]);
  const other: Track = { ...VIDEO, id: 1024 };
  stream.setTracks([VIDEO, other]);
  t.deepEqual(stream.tracks, [VIDEO, other, { ...events, id: 1025 } as Track], 'no two tracks have one id');
  t.true(stream.inject('ID3v2', Buffer.from('tag')));
  t.is(stream.tracks.length, 3);
  stream.close('over');
  t.false(stream.inject('ID3v2', Buffer.from('late')));
});

test('viewers and relays of playlists take no tracks beside them, each until it leaves', (t) => {
  const output = openInput().addOutput('out');
  const leaves = [output.addSession({ ...session('hls'), byPlaylist: true }), output.addRelay({ byPlaylist: true })];
  t.true(output.watched);
  t.false(output.takenBesidePlaylists);
  const others = [output.addSession(session('webrtc')), output.addRelay()];
  for (const leave of others) {
    t.true(output.takenBesidePlaylists);
    leave();
    leave();
  }
  t.false(output.takenBesidePlaylists);
  for (const leave of leaves) leave();
  output.addSession(session('left with the stream'));
  output.close('over');
  t.false(output.takenBesidePlaylists);
});
