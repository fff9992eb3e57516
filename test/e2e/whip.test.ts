import test from 'ava';
import { parseAvcConfig } from '../../src/codecs/h264.ts';
import { nalUnits } from '../../src/codecs/nal.ts';
import type { Packet } from '../../src/core/packet.ts';
import type { InputStream } from '../../src/core/input-stream.ts';
import { toSeconds } from '../../src/core/timebase.ts';
import type { MediaTrack, VideoTrack } from '../../src/core/track.ts';
import { PublisherPeer } from '../support/webrtc/publisher-peer.ts';
import { Teardown } from '../support/programs/teardown.ts';
import { relayedSdp, type Relayed } from '../support/webrtc/relayed-peer.ts';
import { depacketizeH264 } from '../support/webrtc/rtp.ts';
import { SignallingClient } from '../support/webrtc/signalling-client.ts';
import { faulty } from '../support/network/udp-relay.ts';
import { until } from '../support/time/until.ts';
import { ViewerPeer } from '../support/webrtc/viewer-peer.ts';
import { h264, ivf, opus, type Media } from '../support/webrtc/webrtc-media.ts';
import { startWebrtc, type WebrtcServerOptions } from '../support/webrtc/webrtc-server.ts';
import { shared } from '../support/runner/shared.ts';

const picture = await h264();
const sound = await opus();

type Test = import('ava').ExecutionContext;

// Tests that wait for longer than they work are not serial: they run beside each other after those that are.

const undo = new Teardown();
test.after.always(() => undo.run());

async function start(t: Pick<Test, 'teardown'>, options: WebrtcServerOptions = {}) {
  const server = await startWebrtc(t, options);
  const application = server.registry.vhost('default').application('app');
  const live = (name = 'stream') =>
    until(`${name} is live`, () => (application.output(name)?.playlists.length ? application.stream(name) : undefined));
  const publish = async (media: readonly Media<MediaTrack>[], path = '/app/stream?direction=whip') => {
    const peer = new PublisherPeer({ media });
    t.teardown(() => peer.close());
    const response = await peer.publish(server.url + path);
    return { peer, response, location: new URL(response.headers.get('location') ?? '', server.url + path).href };
  };
  return { ...server, application, live, publish };
}

/** The packets of a stream from now on. */
function record(stream: { read(consumer: { packet(packet: Packet): void }): unknown }): Packet[] {
  const packets: Packet[] = [];
  stream.read({ packet: (packet) => void packets.push(packet) });
  return packets;
}

test.serial('WHIP media is distinguished by payload types where neither SSRC nor MID do so', async (t) => {
  const { live, url } = await start(t);
  const peer = new PublisherPeer({ media: [picture, sound] });
  t.teardown(() => peer.close());
  const without = (sdp: string): string => sdp.replace(/^a=(ssrc|ssrc-group|msid):.*\r\n/gm, '');
  await peer.publish(`${url}/app/stream?direction=whip`, undefined, without);
  const input = await live();
  const packets = record(input);
  await until('both', () => new Set(packets.map(({ track }) => track.type)).size === 2);
  t.deepEqual(
    input.tracks.map(({ codec }) => codec),
    ['H264', 'OPUS'],
  );
});

/** More than a second of a stream that is published by WHIP while a viewer plays it. */
async function recordPublished() {
  const { live, publish, url, application } = await start(undo);
  const { response, location } = await publish([picture, sound]);
  const input = await live();
  const packets = record(input);
  const viewer = new ViewerPeer();
  undo.teardown(() => viewer.close());
  await viewer.play(`${url}/app/stream?direction=whep`);
  await until('a second of media', () => packets.length > 80);
  return { url, application, response, location, input, packets, viewer };
}

const published = shared(recordPublished);

test.serial('WHIP answers with SDP, and its stream has the tracks that were offered', async (t) => {
  const { response, input } = await published();
  t.is(response.headers.get('content-type'), 'application/sdp');
  t.deepEqual(
    input.tracks.map(({ id, codec, name }) => [id, codec, name]),
    [
      [0, 'H264', 'Video'],
      [1, 'OPUS', 'Audio'],
    ],
  );
  t.like(input.tracks[0], { width: 320, height: 180 });
  t.deepEqual(
    parseAvcConfig((input.tracks[0] as VideoTrack).config as Buffer).sps,
    parseAvcConfig(picture.track.config as Buffer).sps,
  );
});

test.serial('WHEP viewers receive video and audio that are published by WHIP', async (t) => {
  const { viewer } = await published();
  await t.notThrowsAsync(viewer.until(() => viewer.frames().length >= 40 && viewer.packets.audio.length >= 40));
});

/**
 * By how many frames each packet is ahead of the one before it, in a loop of media.
 * @throws Error when one is no frame of it
 */
function advances({ frames }: Media<MediaTrack>, packets: readonly Packet[]): number[] {
  let place = frames.findIndex(({ data }) => data.equals(packets[0]?.data as Buffer));
  if (place < 0) throw new Error('the first frame was not sent');
  return packets.slice(1).map(({ data, key }, index) => {
    const after = [...frames.slice(place + 1), ...frames.slice(0, place + 1)];
    const ahead = after.findIndex((sent) => sent.data.equals(data) && sent.key === key) + 1;
    if (ahead === 0) throw new Error(`frame ${index + 1} was not sent`);
    place = (place + ahead) % frames.length;
    return ahead;
  });
}

for (const [media, id] of [
  [picture, 0],
  [sound, 1],
] as const) {
  test.serial(`${media.track.codec} frames published by WHIP arrive as they were sent, at their times`, async (t) => {
    const got = (await published()).packets.filter(({ track }) => track.id === id);
    const ahead = advances(media, got);
    // sound that is lost on its way is not sent again
    t.true(ahead.reduce((sum, frames) => sum + frames, 0) < 1.5 * ahead.length, ahead.join(' '));
    if (media === picture)
      t.true(
        ahead.every((frames) => frames === 1),
        ahead.join(' '),
      );
    const steps = got
      .slice(1)
      .map(({ dts, track }, index) => toSeconds(dts - (got[index]?.dts ?? 0), (track as MediaTrack).timebase));
    const step = toSeconds(media.frames[0]?.duration as number, media.track.timebase);
    t.true(
      steps.every((each, index) => Math.abs(each - (ahead[index] as number) * step) < 0.005),
      steps.join(' '),
    );
  });
}

test.serial('WHIP publishers and their bytes are counted, and their addresses known', async (t) => {
  const { input, application, url } = await published();
  t.like(input.source, { type: 'WebRTC', kind: 'webrtc', url: `${url}/app/stream` });
  t.like(input.source.connection?.(), {
    transport: 'UDP',
    protocol: 'UDP',
    localAddress: '127.0.0.1',
    remoteAddress: '127.0.0.1',
  });
  t.is(application.counters.providers.webrtc, 1);
  await until('bytes are counted', () => input.counters.in.totalBytes > 10_000);
});

test.serial('DELETE of a WHIP resource ends its stream, and is answered by 404 from then on', async (t) => {
  const { input, application, location } = await published();
  t.is((await fetch(location, { method: 'DELETE' })).status, 200);
  t.true(input.closed);
  t.is(application.counters.providers.webrtc, 0);
  t.is((await fetch(location, { method: 'DELETE' })).status, 404);
});

for (const codec of ['VP8', 'VP9'] as const) {
  test.serial(`${codec} frames published by WHIP arrive as they were sent`, async (t) => {
    const media = await ivf(codec);
    const { live, publish } = await start(t);
    await publish([media]);
    const input = await live();
    const packets = record(input);
    await until('frames', () => packets.length >= 40);
    const first = media.frames.findIndex(({ data }) => data.equals(packets[0]?.data as Buffer));
    packets.forEach(({ data }, index) => {
      t.true(media.frames[(first + index) % media.frames.length]?.data.equals(data), `frame ${index}`);
    });
  });
}

test.serial('WebSocket signalling offers to receive, and receives', async (t) => {
  const { port, live, url } = await start(t);
  const client = await SignallingClient.open(`ws://127.0.0.1:${port}/app/stream?direction=send`);
  t.teardown(() => client.socket.terminate());
  client.send({ command: 'request_offer' });
  const offer = await client.command('offer');
  t.like(offer, { command: 'offer', peer_id: 0, code: 200, sdp: { type: 'offer' } });
  const peer = new PublisherPeer({ media: [picture, sound], types: { H264: 98, OPUS: 110 }, mids: ['0', '1'] });
  t.teardown(() => peer.close());
  const sdp = await peer.answerTo(offer?.sdp?.sdp ?? '');
  client.send({ command: 'answer', id: offer?.id, peer_id: 0, sdp: { type: 'answer', sdp } });
  const input = await live();
  t.deepEqual(
    input.tracks.map(({ codec }) => codec),
    ['H264', 'OPUS'],
  );
  const viewer = new ViewerPeer();
  t.teardown(() => viewer.close());
  await viewer.play(`${url}/app/stream`);
  await viewer.until(() => viewer.frames().length >= 10);

  const second = await SignallingClient.open(`ws://127.0.0.1:${port}/app/stream?direction=send`);
  second.send({ command: 'request_offer' });
  t.like(await second.next(({ error }) => error !== undefined), { code: 404, error: 'Cannot create offer' });
  client.send({ command: 'stop', id: offer?.id });
  await client.end();
  t.true(input.closed);
});

test.serial(
  'viewers receive packets from any worker, past this process, with whatever payload types they want',
  async (t) => {
    const { live, publish, url, application, pool } = await start(t, { workers: 2 });
    // the second worker starts for the second publisher, and gets the viewers
    await publish([picture, sound], '/app/other?direction=whip');
    await publish([picture, sound]);
    await live();
    await until('both workers run', () => pool.workers.length === 2);
    const output = application.output('stream');
    const viewers = Array.from({ length: 4 }, () => new ViewerPeer());
    t.teardown(() => viewers.forEach((viewer) => viewer.close()));
    await Promise.all(viewers.map((viewer) => viewer.play(`${url}/app/stream?direction=whep`)));
    const client = await SignallingClient.open(url.replace('http', 'ws') + '/app/stream');
    t.teardown(() => client.socket.terminate());
    client.send({ command: 'request_offer' });
    const offer = await client.command('offer');
    const [player] = viewers.splice(0, 1, new ViewerPeer()) as [ViewerPeer];
    player.close();
    const [oven] = viewers as [ViewerPeer];
    const sdp = await oven.answerTo(offer?.sdp?.sdp ?? '');
    client.send({ command: 'answer', id: offer?.id, peer_id: 0, sdp: { type: 'answer', sdp } });
    const published = picture.frames.map(({ data }) => [...nalUnits(data)].at(-1) as Buffer);
    for (const viewer of viewers) {
      await viewer.until(() => viewer.frames().length >= 30 && viewer.packets.audio.length >= 30);
      const frames = viewer.frames().map(({ payloads }) => depacketizeH264(payloads).at(-1) as Buffer);
      const first = published.findIndex((nal) => nal.equals(frames[0] as Buffer));
      t.true(picture.frames[first]?.key, 'it begins with a key frame');
      frames.forEach((nal, index) =>
        t.true(published[(first + index) % published.length]?.equals(nal), `frame ${index}`),
      );
    }
    t.is(output?.readers, 0);
    t.true((pool.workers[1]?.sessions ?? 0) > 0);
    t.true((output?.sessions.size ?? 0) >= 4);
    await until('what they got is counted', () => (output?.counters.out.totalBytes ?? 0) > 100_000);
  },
);

test.serial('playout delay is written into packets in this process', async (t) => {
  const { live, publish, url, application } = await start(t, { webrtc: { playoutDelay: { min: 100, max: 500 } } });
  await publish([picture, sound]);
  await live();
  const viewer = new ViewerPeer();
  t.teardown(() => viewer.close());
  await viewer.play(`${url}/app/stream?direction=whep`);
  await viewer.until(() => viewer.frames().length >= 10 && viewer.packets.audio.length >= 10);
  t.is(application.output('stream')?.readers, 1);
});

test('5 % loss and 100 ms of jitter leave nothing that cannot be decoded', async (t) => {
  const { live, url } = await start(t);
  const peer = new PublisherPeer({ media: [picture, sound] });
  t.teardown(() => peer.close());
  let relay: Relayed<string>['relay'] | undefined;
  await peer.publish(`${url}/app/stream?direction=whip`, async (answer) => {
    const relayed = await relayedSdp(answer, faulty({ seed: 7, loss: 0.05, delayMs: 10, jitterMs: 100 }));
    relay = relayed.relay;
    return relayed.description;
  });
  t.teardown(() => relay?.close());
  const input = await live();
  const packets = record(input);
  await until('media', () => packets.filter(({ track }) => track.type === 'video').length > 150);
  const video = packets.filter(({ track }) => track.type === 'video');
  const sent = new Map(picture.frames.map(({ data }, index) => [data.toString('latin1'), index]));
  let last: number | undefined;
  let skipped = 0;
  for (const { data, key } of video) {
    const index = sent.get(data.toString('latin1'));
    t.not(index, undefined, 'a frame as it was sent');
    const follows = last === undefined || index === (last + 1) % picture.frames.length;
    if (!follows) skipped++;
    t.true(follows || key, 'behind a loss comes a key frame');
    last = index;
  }
  t.log(`${video.length} pictures, ${skipped} gaps`);
  t.true((relay?.counts.toServer.lost ?? 0) > 10);
});

for (const rtcpBasedTimestamp of [false, true]) {
  test(`sound that comes late is put where reports say that it belongs, ${rtcpBasedTimestamp ? 'from the beginning' : 'little by little'}`, async (t) => {
    const { live, url } = await start(t, { ingest: { rtcpBasedTimestamp } });
    // both loops are of one length
    const twoSeconds = { ...sound, frames: sound.frames.slice(0, 100) };
    const peer = new PublisherPeer({ media: [picture, twoSeconds], lateSoundMs: 300 });
    t.teardown(() => peer.close());
    await peer.publish(`${url}/app/stream?direction=whip`);
    const packets = record(await live());
    /** How much later sound is than the picture that was taken with it, in seconds. */
    const lag = (): number | undefined => {
      const [video, audio] = [
        [0, picture],
        [1, sound],
      ].map(([id, media]) => placeOf(packets, id as number, media as Media<MediaTrack>));
      return video === undefined || audio === undefined
        ? undefined
        : ((audio - video + 1 + 2 * LOOP_SECONDS) % LOOP_SECONDS) - 1;
    };
    const first = await until('picture and sound', lag);
    const last = rtcpBasedTimestamp
      ? first
      : await until('they are together', () => {
          const now = lag();
          return now !== undefined && Math.abs(now) < 0.03 && now;
        });
    t.true(Math.abs(last) < 0.03, `${last} s`);
  });
}

const LOOP_SECONDS = 2;

/** The newest packet's time in the stream, less its place in what is published in a loop. */
function placeOf(packets: readonly Packet[], id: number, { frames, track }: Media<MediaTrack>): number | undefined {
  const packet = packets.findLast((one) => one.track.id === id);
  if (packet === undefined) return undefined;
  const index = frames.findIndex(({ data }) => data.equals(packet.data));
  const place = frames.slice(0, index).reduce((sum, { duration }) => sum + duration, 0);
  return toSeconds(packet.pts, (packet.track as MediaTrack).timebase) - toSeconds(place, track.timebase);
}

test.serial('a stream is published by WHIP over IPv6', async (t) => {
  const { live, publish } = await start(t, { ice: [{ address: '::1', protocol: 'udp' }] });
  await publish([picture]);
  const input = await live();
  t.like(input.source.connection?.(), { transport: 'UDP', localAddress: '::1', remoteAddress: '::1' });
});

test.serial('a dead worker ends every stream that it had, and the next worker accepts them', async (t) => {
  const { live, publish, pool } = await start(t, { workers: 1, ingest: { timeout: 600_000 } });
  await publish([picture, sound], '/app/other?direction=whip');
  const other = await live('other');
  process.kill(pool.workers[0]?.pid as number, 'SIGKILL');
  await until('the other ends', () => other.closed);
  await until('the worker is replaced', () => pool.workers.length === 1);
  await publish([picture, sound], '/app/other?direction=whip');
  t.not(await live('other'), other);
});

test('a publisher that vanished gives way to the next one, long before the timeout', async (t) => {
  const { live, publish, url } = await start(t, { ingest: { timeout: 600_000 } });
  const peer = new PublisherPeer({ media: [picture, sound] });
  t.teardown(() => peer.close());
  let relay: Relayed<string>['relay'] | undefined;
  t.teardown(() => relay?.close());
  await peer.publish(`${url}/app/stream?direction=whip`, async (answer) => {
    const relayed = await relayedSdp(answer, faulty({ seed: 3 }));
    ({ relay } = relayed);
    return relayed.description;
  });
  const input = await live();
  await t.throwsAsync(publish([picture]), { message: /^409/ });
  t.false(input.closed);
  relay?.close();
  await until('another one is let in', () =>
    publish([picture, sound]).then(
      () => true,
      () => false,
    ),
  );
  t.true(input.closed);
  t.not(await live(), input);
});

test('a publisher that is connected and sends nothing loses its stream after the timeout', async (t) => {
  const { application, publish, pool } = await start(t, { ingest: { timeout: 12_000 } });
  const { peer } = await publish([
    { ...picture, frames: picture.frames.slice(0, 1).map((frame) => ({ ...frame, duration: 90_000 * 3600 })) },
  ]);
  await peer.until(() => peer.state === 'connected');
  await until('the stream is given up', () => !application.inUse);
  t.is(application.counters.providers.webrtc, 0);
  t.true(pool.workers.every(({ sessions }) => sessions === 0));
});

test('a publisher that sends media stays, whatever becomes of its checks of the way', async (t) => {
  const { live, url } = await start(t, { ingest: { timeout: 8000 } });
  const peer = new PublisherPeer({ media: [picture, sound] });
  t.teardown(() => peer.close());
  let input: InputStream | undefined;
  let checks = 0;
  await peer.publish(`${url}/app/stream?direction=whip`, async (answer) => {
    const { relay, description } = await relayedSdp(answer, () => (datagram) => {
      if (input === undefined || !isStun(datagram)) return [0];
      checks++;
      return [];
    });
    t.teardown(() => relay.close());
    return description;
  });
  input = await live();
  const packets = record(input);
  await until(
    'it was long without',
    () => input?.closed || packets.some(({ dts, track }) => toSeconds(dts, track.timebase) > 15),
  );
  t.false(input.closed);
  t.true(checks > 1);
});

/** RFC 7983 section 7. */
function isStun(datagram: Buffer): boolean {
  return datagram.readUInt8(0) < 4;
}
