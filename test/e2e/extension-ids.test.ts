import test from 'ava';
import { LiveStream } from '../support/server/live-stream.ts';
import { PEER_TYPES } from '../support/webrtc/peer-types.ts';
import { depacketizeH264, type Rtp } from '../support/webrtc/rtp.ts';
import { ViewerPeer } from '../support/webrtc/viewer-peer.ts';
import { h264, opus } from '../support/webrtc/webrtc-media.ts';
import { startWebrtc } from '../support/webrtc/webrtc-server.ts';

const MID = 'urn:ietf:params:rtp-hdrext:sdes:mid';
const SEND_TIME = 'http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time';
const TRANSPORT_CC = 'http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01';
const ORIENTATION = 'urn:3gpp:video-orientation';

const picture = await h264();
const sound = await opus();

/** An offer with header extensions in its video section, feedback that goes with them, and H.264 under another payload type. */
function offering(extensions: Readonly<Record<number, string>>, payloadType: number) {
  const lines = Object.entries(extensions).map(([id, uri]) => `a=extmap:${id} ${uri}\r\n`);
  return (sdp: string): string =>
    sdp
      .replaceAll(new RegExp(`(m=video .*|:)\\b${PEER_TYPES.H264}\\b`, 'g'), `$1${payloadType}`)
      .replace(/^a=mid:v\r\n/m, `$&${lines.join('')}a=rtcp-fb:${payloadType} transport-cc\r\n`);
}

/** By how much what an extension counts goes up from packet to packet. */
function steps(packets: readonly Rtp[], id: number): number[] {
  const counts = packets.map(({ extensions }) => extensions.get(id)?.readUInt16BE(0) ?? NaN);
  return counts.slice(1).map((count, index) => (count - (counts[index] as number) + 0x10000) % 0x10000);
}

test('viewers with other numbers of header extensions and payload types each get theirs, of one stream', async (t) => {
  // one worker: all that differs is the session
  const server = await startWebrtc(t, { workers: 1 });
  const live = new LiveStream(server.registry, [picture, sound]);
  t.teardown(() => live.close());
  const wishes: { extensions: Record<number, string>; payloadType: number }[] = [
    { extensions: { 3: ORIENTATION, 9: MID, 4: TRANSPORT_CC, 2: SEND_TIME }, payloadType: 102 },
    { extensions: { 1: TRANSPORT_CC, 5: MID, 14: SEND_TIME }, payloadType: 102 },
    { extensions: { 4: MID, 12: TRANSPORT_CC }, payloadType: 96 },
    { extensions: {}, payloadType: 102 },
  ];
  for (const { extensions, payloadType } of wishes) {
    const viewer = new ViewerPeer();
    t.teardown(() => viewer.close());
    let answer = '';
    await viewer.play(
      `${server.url}/app/stream?direction=whep`,
      (sdp) => (answer = sdp),
      offering(extensions, payloadType),
    );
    await viewer.until(() => viewer.frames().length >= 30);
    const video = answer.slice(answer.indexOf('m=video')).split('m=audio')[0] ?? '';
    const idOf = (uri: string) => Number(Object.entries(extensions).find((entry) => entry[1] === uri)?.[0]);
    const agreed = [MID, SEND_TIME, TRANSPORT_CC].filter((uri) => idOf(uri) > 0);
    t.deepEqual(
      [...video.matchAll(/^a=extmap:(\d+) (\S+)/gm)].map(([, id, uri]) => [Number(id), uri]).toSorted(),
      agreed.map((uri) => [idOf(uri), uri]).toSorted(),
    );
    const packets = viewer.packets.video.filter((packet) => packet.payloadType === payloadType);
    t.is(packets.length, viewer.packets.video.length);
    if (agreed.includes(MID))
      t.true(packets.every((packet) => packet.extensions.get(idOf(MID))?.toString('latin1').startsWith('v')));
    if (agreed.includes(TRANSPORT_CC))
      t.true(steps(packets, idOf(TRANSPORT_CC)).every((step) => step >= 1 && step < 50));
    if (agreed.includes(SEND_TIME))
      t.true(packets.every((packet) => packet.extensions.get(idOf(SEND_TIME))?.length === 3));
    // what was not agreed on is under no number that was
    for (const [id, uri] of Object.entries(extensions))
      if (!agreed.includes(uri)) t.false(packets.some((packet) => packet.extensions.has(Number(id))));
    const [frame] = viewer.frames().slice(-1);
    const nal = depacketizeH264(frame?.payloads ?? []).at(-1) as Buffer;
    t.true(picture.frames.some(({ data }) => data.subarray(-nal.length).equals(nal)));
  }
});
