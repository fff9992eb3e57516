import test, { type ExecutionContext } from 'ava';
import { parse } from 'sdp-transform';
import { nalType, NAL } from '../../../../src/codecs/h265.ts';
import { joinNals, nalUnits } from '../../../../src/codecs/nal.ts';
import type { Packet } from '../../../../src/core/packet.ts';
import type { MediaTrack } from '../../../../src/core/track.ts';
import { LiveStream } from '../../../support/server/live-stream.ts';
import { H264_VIDEO, offerOf, type OfferedMedia } from '../../../support/webrtc/offers.ts';
import { faulty } from '../../../support/network/udp-relay.ts';
import { relayedSdp } from '../../../support/webrtc/relayed-peer.ts';
import { depacketizeH265, type Rtp } from '../../../support/webrtc/rtp.ts';
import { PublisherPeer } from '../../../support/webrtc/publisher-peer.ts';
import { SignallingClient } from '../../../support/webrtc/signalling-client.ts';
import { until } from '../../../support/time/until.ts';
import { ViewerPeer } from '../../../support/webrtc/viewer-peer.ts';
import { h264, h265, ivf, type Media } from '../../../support/webrtc/webrtc-media.ts';
import { startWebrtc } from '../../../support/webrtc/webrtc-server.ts';
import type { PeerOptions } from '../../../support/webrtc/whep-peer.ts';

const GOP = 15;
const picture = await h265();
const other = await h264({ id: 1, name: 'other' });

async function start(t: ExecutionContext, media: readonly Media<MediaTrack>[], webrtc = {}) {
  const server = await startWebrtc(t, { webrtc });
  const stream = new LiveStream(server.registry, media);
  t.teardown(() => stream.close());
  const post = async (offered: OfferedMedia) => {
    const url = `${server.url}/app/stream?direction=whep`;
    const headers = { 'content-type': 'application/sdp' };
    const response = await fetch(url, { method: 'POST', headers, body: offerOf([offered]) });
    return { status: response.status, body: await response.text() };
  };
  const play = async (video: PeerOptions['video']) => {
    const peer = new ViewerPeer({ video, audio: false });
    t.teardown(() => peer.close());
    await peer.play(`${server.url}/app/stream?direction=whep`);
    return peer;
  };
  return { ...server, stream, post, play };
}

/** What a browser lists: some codecs, and H.265 with its retransmissions. */
const listed = (codecs: readonly (readonly [type: number, name: string, fmtp?: string])[]): OfferedMedia => ({
  kind: 'video',
  types: codecs.map(([type]) => type),
  lines: [
    'a=extmap:4 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01',
    ...codecs.flatMap(([type, name, fmtp]) => [
      `a=rtpmap:${type} ${name}/90000`,
      ...(fmtp === undefined ? [] : [`a=fmtp:${type} ${fmtp}`]),
      ...(name === 'rtx'
        ? []
        : ['goog-remb', 'transport-cc', 'ccm fir', 'nack', 'nack pli'].map((one) => `a=rtcp-fb:${type} ${one}`)),
    ]),
  ],
});
const CHROME = listed([
  [96, 'VP8'],
  [97, 'rtx', 'apt=96'],
  [102, 'H264', 'level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f'],
  [103, 'rtx', 'apt=102'],
  [45, 'AV1', 'level-idx=5;profile=0;tier=0'],
  [46, 'rtx', 'apt=45'],
  [116, 'H265', 'level-id=180;profile-id=1;tier-flag=0;tx-mode=SRST'],
  [117, 'rtx', 'apt=116'],
]);
const CHROME_MANY = listed([
  [96, 'VP8'],
  [97, 'rtx', 'apt=96'],
  [49, 'H265', 'level-id=180;profile-id=1;tier-flag=0;tx-mode=SRST'],
  [50, 'rtx', 'apt=49'],
  [51, 'H265', 'level-id=180;profile-id=2;tier-flag=0;tx-mode=SRST'],
  [52, 'rtx', 'apt=51'],
]);
const SAFARI = listed([
  [96, 'H264', 'level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=640c1f'],
  [97, 'rtx', 'apt=96'],
  [100, 'H265', 'level-id=93;tx-mode=SRST'],
  [101, 'rtx', 'apt=100'],
  [104, 'VP8'],
]);

test('a viewer that offers H.265 gets the frames of the source, from a key frame on', async (t) => {
  const { play } = await start(t, [picture]);
  const peer = await play('H265');
  await peer.until(() => peer.frames().length >= picture.frames.length + 5);
  const frames = peer.frames().map(({ payloads }) => depacketizeH265(payloads));
  const sets = [NAL.vps, NAL.sps, NAL.pps];
  t.deepEqual(frames[0]?.slice(0, 3).map(nalType), sets, 'it begins with a key frame and its parameter sets');
  const sent = picture.frames.map(({ data }) => [...nalUnits(data)]);
  const came = frames.map((units) => units.filter((nal) => !sets.includes(nalType(nal) as 32)));
  const from = sent.findIndex((units) => came[0]?.at(-1)?.equals(units.at(-1) as Buffer));
  t.true(picture.frames[from]?.key);
  for (const [index, units] of came.entries()) t.deepEqual(units, sent[(from + index) % sent.length], `frame ${index}`);
  t.true(
    picture.frames.some(({ data }) => data.length > 2400),
    'some units took several packets',
  );
});

test('H.265 that is published over WebRTC is a stream, and goes to viewers as it came', async (t) => {
  const { url, registry } = await startWebrtc(t);
  const publisher = new PublisherPeer({ media: [picture] });
  t.teardown(() => publisher.close());
  await publisher.publish(`${url}/app/stream?direction=whip`);
  const application = registry.vhost('default').application('app');
  const input = await until('it is live', () =>
    application.output('stream')?.playlists.length ? application.stream('stream') : undefined,
  );
  t.like(input.tracks, [{ codec: 'H265', width: 320, height: 180 }]);
  const packets: Packet[] = [];
  input.read({ packet: (packet) => void packets.push(packet) });
  const viewer = new ViewerPeer({ video: 'H265', audio: false });
  t.teardown(() => viewer.close());
  await viewer.play(`${url}/app/stream?direction=whep`);
  await viewer.until(() => viewer.frames().length > 2 * GOP);
  const sent = new Set(picture.frames.map(({ data }) => data.toString('base64')));
  t.true(packets.length > GOP);
  for (const { data } of packets) t.true(sent.has(data.toString('base64')));
  const isSet = (nal: Buffer) => nalType(nal) >= NAL.vps && nalType(nal) <= NAL.pps;
  // the first may be the end of a group of pictures, and of a frame
  for (const { payloads } of viewer.frames().slice(1)) {
    const nals = depacketizeH265(payloads).filter((nal) => !isSet(nal));
    t.true(sent.has(joinNals(nals).toString('base64')));
  }
  const other = new ViewerPeer({ video: 'AV1', audio: false });
  t.teardown(() => other.close());
  await t.throwsAsync(other.play(`${url}/app/stream?direction=whep`), { message: /^406/ });
});

test('the WebSocket takes H.265 from publishers', async (t) => {
  const { url, registry } = await startWebrtc(t);
  const client = await SignallingClient.open(`${url.replace('http', 'ws')}/app/stream?direction=send`);
  t.teardown(() => client.socket.close());
  client.send({ command: 'request_offer' });
  const offer = await client.command('offer');
  const peer = new PublisherPeer({ media: [picture], types: { H265: 100 }, mids: ['0'] });
  t.teardown(() => peer.close());
  const sdp = await peer.answerTo(offer.sdp?.sdp ?? '');
  client.send({ command: 'answer', id: offer.id, peer_id: 0, sdp: { type: 'answer', sdp } });
  const application = registry.vhost('default').application('app');
  await until('it is live', () => application.output('stream'));
  t.deepEqual(
    application.stream('stream')?.tracks.map(({ codec }) => codec),
    ['H265'],
  );
});

test('a publisher sends H.265 again that was lost', async (t) => {
  // however busy the machine is
  const { url, registry } = await startWebrtc(t, { ingest: { rtx: { maxHoldMs: 20_000 } } });
  const publisher = new PublisherPeer({ media: [picture], exactReports: true });
  t.teardown(() => publisher.close());
  let counts: { readonly lost: number } = { lost: 0 };
  await publisher.publish(`${url}/app/stream?direction=whip`, async (answer) => {
    const { relay, description } = await relayedSdp(answer, faulty({ seed: 4, loss: 0.02 }));
    t.teardown(() => relay.close());
    counts = relay.counts.toServer;
    return description;
  });
  const application = registry.vhost('default').application('app');
  const input = await until('it is live', () =>
    application.output('stream')?.playlists.length ? application.stream('stream') : undefined,
  );
  const packets: Packet[] = [];
  input.read({ packet: (packet) => void packets.push(packet) });
  await until('enough was lost', () => counts.lost > 5);
  const enough = packets.length + 2 * GOP;
  await until('what follows has come', () => packets.length > enough);
  const sent = picture.frames.map(({ data }) => data.toString('base64'));
  const places = packets.map(({ data }) => sent.indexOf(data.toString('base64')));
  const gaps = places.filter((place, at) => at > 0 && place !== ((places[at - 1] as number) + 1) % sent.length);
  t.false(places.includes(-1), 'every frame is one of the source');
  t.deepEqual(gaps, []);
});

for (const rtx of [undefined, 112])
  test(`what a viewer lost of H.265 comes again ${rtx === undefined ? 'in the stream' : 'as retransmission'}`, async (t) => {
    const { url } = await start(t, [picture], { rtx: true });
    const peer = new ViewerPeer({ video: 'H265', audio: false, again: rtx === undefined ? {} : { rtx } });
    t.teardown(() => peer.close());
    let counts: { readonly lost: number } = { lost: 0 };
    await peer.play(`${url}/app/stream?direction=whep`, async (answer) => {
      const { relay, description } = await relayedSdp(answer, faulty({ seed: 6, loss: 0.02 }));
      t.teardown(() => relay.close());
      counts = relay.counts.toClient;
      return description;
    });
    const sequences = () => {
      const all = new Map<number, Buffer>();
      for (const { payloadType, sequence, payload } of peer.packets.video) {
        if (payloadType === rtx) all.set(payload.readUInt16BE(0), payload.subarray(2));
        else all.set(sequence, payload);
      }
      return all;
    };
    const isRepeated = ({ payloadType, sequence }: Rtp, at: number, all: readonly Rtp[]) =>
      payloadType === rtx || (at > 0 && ((sequence - (all[at - 1] as Rtp).sequence) & 0xffff) > 0x8000);
    // what is asked for twice comes twice
    await peer.until(() => counts.lost > 5 && peer.packets.video.filter(isRepeated).length > 5);
    const from = peer.packets.video[0]?.sequence ?? 0;
    const last = peer.packets.video.findLast(({ payloadType }) => payloadType !== rtx)?.sequence ?? 0;
    await peer.until(() => {
      const all = sequences();
      return Array.from({ length: (last - from) & 0xffff }, (_, at) => all.has((from + at) & 0xffff)).every(Boolean);
    });
    const nals = new Set(
      picture.frames.flatMap(({ data }) => [...nalUnits(data)].map((nal) => nal.toString('base64'))),
    );
    const all = sequences();
    const payloads = Array.from({ length: (last - from) & 0xffff }, (_, at) => all.get((from + at) & 0xffff) as Buffer);
    // the last unit may have begun only
    const end = payloads.findLastIndex((payload) => payload.readUInt8(0) >> 1 !== 49);
    const came = depacketizeH265(payloads.slice(0, end)).filter((nal) => nalType(nal) < NAL.vps);
    t.true(came.length > 20);
    for (const nal of came) t.true(nals.has(nal.toString('base64')));
  });

test('AV1 begins with a key frame as well, whenever a viewer comes', async (t) => {
  const { play } = await start(t, [await ivf('AV1')]);
  const peer = await play('AV1');
  await peer.until(() => peer.frames().length > 3);
  // the bit of a new coded video sequence (RTP Payload Format For AV1, section 4.4)
  t.is((peer.packets.video[0]?.payload.readUInt8(0) ?? 0) & 0x08, 0x08);
});

test("browsers' offers of H.265 are answered with it under their payload types", async (t) => {
  const { post } = await start(t, [picture], { rtx: true });
  for (const [offer, types, fmtp] of [
    [CHROME, [116, 117], 'level-id=180;profile-id=1;tier-flag=0;tx-mode=SRST'],
    // what a worker cannot give to retransmissions: lost packets are sent again in the stream itself
    [CHROME_MANY, [49], 'level-id=180;profile-id=1;tier-flag=0;tx-mode=SRST'],
    [SAFARI, [100, 101], 'level-id=93;tx-mode=SRST'],
  ] as const) {
    const { status, body } = await post(offer);
    t.is(status, 201);
    const [media] = parse(body).media;
    t.is(String(media?.payloads), types.join(' '));
    const [type, rtx] = types;
    t.like(media?.rtp[0], { payload: type, codec: 'H265', rate: 90_000 });
    t.deepEqual(media?.fmtp, [
      { payload: type, config: fmtp },
      ...(rtx === undefined ? [] : [{ payload: rtx, config: `apt=${type}` }]),
    ]);
    const feedback = media?.rtcpFb?.map(({ type: name, subtype }) => `${name} ${subtype ?? ''}`.trim());
    for (const one of ['nack', 'nack pli', 'ccm fir', 'transport-cc']) t.true(feedback?.includes(one), one);
  }
});

test('viewers without H.265 get the other video of a stream, or a refusal, and those who had it before get it still', async (t) => {
  const both = await start(t, [picture, other]);
  const codecs = async (offer: OfferedMedia) => parse((await both.post(offer)).body).media[0]?.rtp[0]?.codec;
  for (const offer of [CHROME, SAFARI, H264_VIDEO]) t.is(await codecs(offer), 'H264');
  t.is(await codecs(listed([[96, 'H265']])), 'H265');
  const { post } = await start(t, [picture]);
  t.is((await post(H264_VIDEO)).status, 406);
  t.is((await post(listed([[45, 'AV1']]))).status, 406);
});

test('an offer on the WebSocket has H.265 with what the track is, where there is no other video', async (t) => {
  const { url } = await start(t, [picture], { rtx: true });
  const client = await SignallingClient.open(`${url.replace('http', 'ws')}/app/stream`);
  t.teardown(() => client.socket.close());
  client.send({ command: 'request_offer' });
  const { sdp } = (await client.next(({ command }) => command === 'offer'))?.sdp ?? { sdp: '' };
  t.regex(sdp, /^a=rtpmap:100 H265\/90000\r$/m);
  t.regex(sdp, /^a=fmtp:100 level-id=\d+;profile-id=1;tier-flag=0;tx-mode=SRST\r$/m);
  t.regex(sdp, /^a=fmtp:101 apt=100\r$/m);
});

test('a viewer that answers without the only media of an offer is refused', async (t) => {
  const { url, stream } = await start(t, [picture]);
  const client = await SignallingClient.open(`${url.replace('http', 'ws')}/app/stream`);
  t.teardown(() => client.socket.close());
  client.send({ command: 'request_offer' });
  const offer = await client.next(({ command }) => command === 'offer');
  const sdp = offerOf([{ ...H264_VIDEO, port: 0, direction: 'inactive' }]).replace('actpass', 'active');
  client.send({ command: 'answer', id: offer?.id, peer_id: 0, sdp: { type: 'answer', sdp } });
  t.like(await client.next(({ error }) => error !== undefined), { code: 404, error: 'Cannot create offer' });
  await until('it is gone', () => stream.output.sessions.size === 0);
});
