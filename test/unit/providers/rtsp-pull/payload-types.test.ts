import test from 'ava';
import { pino } from 'pino';
import { pictures, rtp, SILENCE } from '../../../support/media/camera-media.ts';
import { CAMERA_SDP, FakeCamera } from '../../../support/rtsp/fake-camera.ts';
import { playRtsp } from '../../../support/rtsp/rtsp-player.ts';
import { until } from '../../../support/time/until.ts';

/** The packets of pictures with another one, of a payload type that is not described, behind every third. */
function withOthers(packets: readonly Buffer[], ssrc: number): Buffer[] {
  let sequence = 0;
  return packets.flatMap((packet, i) => {
    const own = Buffer.from(packet);
    own.writeUInt16BE(sequence++, 2);
    return i % 3 === 2 ? [own, rtp(50, sequence++, own.readUInt32BE(4), Buffer.alloc(20), true, ssrc)] : [own];
  });
}

test('packets of a payload type that is not described are no gap in those that are', async (t) => {
  const camera = await FakeCamera.start(t);
  const played = await playRtsp(t, camera.url(), { ignoresReports: true });
  for (const packet of withOthers(pictures(30), 96)) camera.media(0, packet);
  camera.media(2, rtp(8, 0, 0, SILENCE));
  camera.media(2, rtp(13, 1, 160, Buffer.of(40), false, 8));
  camera.media(2, rtp(8, 2, 320, SILENCE));
  await until('all', () => played.of('video').length === 30 && played.of('audio').length === 2);
  const times = played.of('video').map(({ dts }) => dts);
  t.true(times.every((dts, i) => i === 0 || dts - (times[i - 1] as number) === 3600));
});

test('every format of a section may come: the first packet decides which', async (t) => {
  const sdp = CAMERA_SDP.replace('m=video 0 RTP/AVP 96', 'm=video 0 RTP/AVP 97 96 98')
    .replace('a=rtpmap:96', 'a=rtpmap:97 H265/90000\r\na=rtpmap:98 H264/90000\r\na=rtpmap:96')
    .replace('RTP/AVP 8', 'RTP/AVP 0 8');
  const camera = await FakeCamera.start(t, { sdp });
  const played = await playRtsp(t, camera.url(), { ignoresReports: true });
  for (const packet of pictures(2)) camera.media(0, packet);
  camera.media(2, rtp(8, 0, 0, SILENCE));
  await until('both', () => played.of('video').length === 2 && played.of('audio').length === 1);
  t.deepEqual(
    played.told.at(-1)?.map(({ codec }) => codec),
    ['H264', 'PCMA'],
  );
  // the same codec under another number goes on
  for (const packet of pictures(2, 2, 98)) {
    packet.writeUInt32BE(96, 8);
    packet.writeUInt16BE(packet.readUInt16BE(2) - 2000 + 10, 2);
    camera.media(0, packet);
  }
  await until('the next pictures', () => played.of('video').length === 4);
  t.deepEqual(played.ends, []);
});

test('a form that is not taken is passed over for one that is', async (t) => {
  const sdp = CAMERA_SDP.replace('m=video 0 RTP/AVP 96', 'm=video 0 RTP/AVP 97 96').replace(
    'a=rtpmap:96',
    'a=rtpmap:97 H264/90000\r\na=fmtp:97 packetization-mode=2\r\na=rtpmap:96',
  );
  const camera = await FakeCamera.start(t, { sdp });
  const played = await playRtsp(t, camera.url(), { ignoresReports: true });
  for (const packet of pictures(2)) camera.media(0, packet);
  await until('the pictures', () => played.of('video').length === 2);
  t.deepEqual(played.ends, []);
});

test('a source without usable packets says why', async (t) => {
  const camera = await FakeCamera.start(t);
  const log = pino({ level: 'silent' });
  const played = await playRtsp(t, camera.url(), { log });
  t.is(played.source.trouble, undefined);
  for (const packet of pictures(2, 0, 98)) camera.media(0, packet);
  await until('a word', () => played.source.trouble);
  t.is(played.source.trouble, 'H264: a packet of payload type 98, which is not that of the track');
  t.deepEqual(played.packets, []);
});
