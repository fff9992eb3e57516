import test from 'ava';
import { parseAvcConfig } from '../../src/codecs/h264.ts';
import { nalUnits } from '../../src/codecs/nal.ts';
import { LiveStream } from '../support/server/live-stream.ts';
import { h264, ivf, opus, telephony } from '../support/webrtc/webrtc-media.ts';
import { dataTrack, eventPacket } from '../support/media/packets.ts';
import { relayedSdp } from '../support/webrtc/relayed-peer.ts';
import { depacketizeH264, depacketizeVp8, depacketizeVp9 } from '../support/webrtc/rtp.ts';
import { faulty } from '../support/network/udp-relay.ts';
import { until } from '../support/time/until.ts';
import { startWebrtc } from '../support/webrtc/webrtc-server.ts';
import { PEER_TYPES } from '../support/webrtc/peer-types.ts';
import { ViewerPeer } from '../support/webrtc/viewer-peer.ts';

const video = await h264();
const audio = await opus();

test('a WHEP viewer gets every frame as it was published, from a key frame on', async (t) => {
  const { registry, url } = await startWebrtc(t);
  const live = new LiveStream(registry, [video, audio]);
  t.teardown(() => live.close());
  const peer = new ViewerPeer();
  t.teardown(() => peer.close());
  await peer.play(`${url}/app/stream?direction=whep`);
  await peer.until(() => peer.frames().length >= 60 && peer.packets.audio.length >= 50);

  const { sps, pps } = parseAvcConfig(video.track.config as Buffer);
  const published = video.frames.map(({ data }) => [...nalUnits(data)]);
  const frames = peer.frames().map(({ payloads }) => depacketizeH264(payloads));
  const first = published.findIndex((nals) => nals.at(-1)?.equals(frames[0]?.at(-1) as Buffer));
  t.true(video.frames[first]?.key);
  frames.forEach((nals, index) => {
    const at = (first + index) % published.length;
    const sets = video.frames[at]?.key ? [...sps, ...pps] : [];
    t.deepEqual(nals, [...sets, ...(published[at] as Buffer[])], `frame ${index}`);
  });
  const times = peer.frames().map(({ timestamp }) => timestamp);
  t.true(times.slice(1).every((time, i) => (time - (times[i] as number)) >>> 0 === 3000));
  t.true(peer.packets.video.every(({ payloadType }) => payloadType === PEER_TYPES.H264));
  t.true(peer.packets.audio.every(({ payloadType }) => payloadType === PEER_TYPES.OPUS));
  const sent = new Set(audio.frames.map(({ data }) => data.toString('hex')));
  t.true(peer.packets.audio.every(({ payload }) => sent.has(payload.toString('hex'))));
});

test('a viewer with a data channel gets events, and one without as before', async (t) => {
  const { registry, url } = await startWebrtc(t);
  const live = new LiveStream(registry, [video, audio]);
  t.teardown(() => live.close());
  const [asking, other] = [new ViewerPeer({ events: true }), new ViewerPeer()];
  for (const peer of [asking, other]) {
    t.teardown(() => peer.close());
    await peer.play(`${url}/app/stream?direction=whep`);
    await peer.until(() => peer.frames().length >= 2);
  }
  const event = (codec: 'ID3v2' | 'CUE', text: string) => eventPacket(dataTrack({ codec }), 90_000, text);
  await until('the channel is open', () => {
    live.output.write(event('CUE', '{"cueType":"in"}'));
    return asking.events.length > 0;
  });
  live.output.write(event('ID3v2', 'ID3 \0 text'));
  await asking.until(() => asking.events.at(-1)?.type === 'ID3v2');
  t.like(asking.events[0], { type: 'CUE', time: 1, encoding: 'utf-8', data: '{"cueType":"in"}' });
  t.like(asking.events.at(-1), { encoding: 'base64', data: Buffer.from('ID3 \0 text').toString('base64') });
  t.is(other.events.length, 0);
  t.is(other.state, 'connected');
});

for (const codec of ['VP8', 'VP9'] as const) {
  test(`${codec} reaches a WHEP viewer whole`, async (t) => {
    const media = await ivf(codec);
    const { registry, url } = await startWebrtc(t);
    const live = new LiveStream(registry, [media]);
    t.teardown(() => live.close());
    const peer = new ViewerPeer({ video: codec });
    t.teardown(() => peer.close());
    await peer.play(`${url}/app/stream`);
    await peer.until(() => peer.frames().length >= 40);
    const depacketize = codec === 'VP8' ? depacketizeVp8 : depacketizeVp9;
    const frames = peer.frames().map(({ payloads }) => depacketize(payloads).frame);
    const first = media.frames.findIndex(({ data }) => data.equals(frames[0] as Buffer));
    t.true(media.frames[first]?.key);
    frames.forEach((frame, index) => {
      t.true(media.frames[(first + index) % media.frames.length]?.data.equals(frame), `frame ${index}`);
    });
  });
}

test('20 viewers get every frame, one of them leaves, the others go on', async (t) => {
  const { registry, url, pool } = await startWebrtc(t);
  const live = new LiveStream(registry, [video, audio]);
  t.teardown(() => live.close());
  const peers = Array.from({ length: 20 }, () => new ViewerPeer());
  t.teardown(() => peers.forEach((peer) => peer.close()));
  const responses: Response[] = [];
  // one after the other: one process does all their handshakes, for which a session has 10 s
  for (const peer of peers) {
    responses.push(await peer.play(`${url}/app/stream?direction=whep`));
    await peer.until(() => peer.state === 'connected');
  }
  t.is(live.output.sessions.size, 20);
  t.is(live.output.counters.publishers.webrtc, 20);
  await Promise.all(peers.map((peer) => peer.until(() => peer.frames().length >= 30)));
  const left = await fetch(new URL(responses[0]?.headers.get('location') as string, url), { method: 'DELETE' });
  t.is(left.status, 200);
  t.is(live.output.sessions.size, 19);
  t.is(
    pool.workers.reduce((sum, { sessions }) => sum + sessions, 0),
    19,
  );
  const counts = peers.slice(1).map((peer) => peer.frames().length);
  await Promise.all(
    peers.slice(1).map((peer, i) => peer.until(() => peer.frames().length >= (counts[i] as number) + 15)),
  );
  for (const peer of peers.slice(1)) {
    const times = peer.frames().map(({ timestamp }) => timestamp);
    t.true(times.slice(1).every((time, i) => (time - (times[i] as number)) >>> 0 === 3000));
  }
});

test('a killed media worker costs its viewers their session and no others anything', async (t) => {
  // however few cores there are
  const { registry, url, pool } = await startWebrtc(t, { workers: 2 });
  const live = new LiveStream(registry, [video, audio]);
  t.teardown(() => live.close());
  const first = new ViewerPeer();
  t.teardown(() => first.close());
  await first.play(`${url}/app/stream`);
  await first.until(() => first.frames().length >= 5);
  const [worker] = pool.workers.filter(({ sessions }) => sessions > 0);
  process.kill(worker?.pid as number, 'SIGKILL');
  await until('the session ends', () => live.output.sessions.size === 0);
  const next = new ViewerPeer();
  t.teardown(() => next.close());
  await next.play(`${url}/app/stream`);
  await next.until(() => next.frames().length >= 5);
  t.true(next.frames().length >= 5);
  await until('the worker is replaced', () =>
    pool.workers.some(({ index, pid }) => index === worker?.index && pid !== worker?.pid),
  );
});

test('a hung media worker is killed and replaced', async (t) => {
  const { registry, url, pool } = await startWebrtc(t, { workers: 2 });
  const live = new LiveStream(registry, [video, audio]);
  t.teardown(() => live.close());
  const first = new ViewerPeer();
  t.teardown(() => first.close());
  await first.play(`${url}/app/stream`);
  await first.until(() => first.frames().length >= 5);
  const worker = pool.workers.find(({ sessions }) => sessions > 0);
  process.kill(worker?.pid as number, 'SIGSTOP');
  await until('the session ends', () => live.output.sessions.size === 0);
  const next = new ViewerPeer();
  t.teardown(() => next.close());
  await next.play(`${url}/app/stream`);
  await next.until(() => next.frames().length >= 5);
  t.true(pool.workers.every(({ pid }) => pid !== worker?.pid));
});

test('a stream without viewers is not read for WebRTC', async (t) => {
  const { registry, url } = await startWebrtc(t);
  const live = new LiveStream(registry, [video, audio]);
  t.teardown(() => live.close());
  t.is(live.output.readers, 0);
  const peer = new ViewerPeer();
  const response = await peer.play(`${url}/app/stream`);
  await peer.until(() => peer.frames().length >= 5);
  t.is(live.output.readers, 1);
  await until('bytes are counted', () => live.output.counters.out.totalBytes > 0);
  await fetch(new URL(response.headers.get('location') as string, url), { method: 'DELETE' });
  peer.close();
  await until('the feed is released', () => live.output.readers === 0);
});

test('the end of a stream ends its sessions', async (t) => {
  const { registry, url } = await startWebrtc(t);
  const live = new LiveStream(registry, [video]);
  const peer = new ViewerPeer({ audio: false });
  t.teardown(() => peer.close());
  const response = await peer.play(`${url}/app/stream`);
  await peer.until(() => peer.frames().length >= 5);
  live.close();
  await peer.until(() => ['disconnected', 'failed', 'closed'].includes(peer.state));
  const gone = await fetch(new URL(response.headers.get('location') as string, url), { method: 'DELETE' });
  t.is(gone.status, 404);
});

test('a viewer behind a bad way has the picture', async (t) => {
  const { registry, url } = await startWebrtc(t);
  const live = new LiveStream(registry, [video]);
  t.teardown(() => live.close());
  const peer = new ViewerPeer({ audio: false });
  t.teardown(() => peer.close());
  const headers = { 'content-type': 'application/sdp' };
  const answer = await fetch(`${url}/app/stream`, { method: 'POST', headers, body: await peer.offer() });
  const { relay, description } = await relayedSdp(await answer.text(), faulty({ seed: 9, loss: 0.05, jitterMs: 20 }));
  t.teardown(() => relay.close());
  peer.answer(description);
  await peer.until(() => peer.packets.video.length >= 100);
  t.true(relay.counts.toClient.sent >= 100);
  t.true(relay.counts.toClient.lost > 0 && relay.counts.toClient.overtaken > 0);
  t.is(relay.clients, 1);
});

for (const codec of ['PCMU', 'PCMA', 'G722'] as const)
  test(`${codec} reaches a WHEP viewer as it was published`, async (t) => {
    const { registry, url } = await startWebrtc(t);
    const telephone = await telephony(codec);
    const live = new LiveStream(registry, [video, telephone]);
    t.teardown(() => live.close());
    const peer = new ViewerPeer();
    t.teardown(() => peer.close());
    const offered = (sdp: string): string =>
      sdp.replace(/opus\/48000\/2/i, `${codec}/8000`).replace(/a=fmtp:125 .*\r\n/, '');
    await peer.play(`${url}/app/stream?direction=whep`, undefined, offered);
    await peer.until(() => peer.packets.audio.length >= 50);
    const sent = new Set(telephone.frames.map(({ data }) => data.toString('hex')));
    t.true(peer.packets.audio.every(({ payload }) => sent.has(payload.toString('hex'))));
    const times = peer.packets.audio.map(({ timestamp }) => timestamp);
    t.true(
      times.slice(1).every((time, i) => (time - (times[i] as number)) >>> 0 === 160),
      'a clock of 8 kHz',
    );
    t.true(peer.packets.audio.every(({ payloadType }) => payloadType === PEER_TYPES.OPUS));
  });
