import { createPacketizer } from '../../../src/protocols/rtp/packetizer.ts';
import { writeSenderReport } from '../../../src/protocols/rtp/rtcp.ts';
import { RtpSender } from '../../../src/protocols/rtp/sender.ts';
import { samples, vector } from '../../unit/codecs/vectors.ts';
import { videoTrack } from '../media/packets.ts';

/** The bytes of a server that a client takes two tracks of: what it answers, one request after the other, and what it sends then. */
export interface RtspConversation {
  /** To OPTIONS, DESCRIBE, twice SETUP, and PLAY. */
  readonly answers: readonly Buffer[];
  /** Interleaved packets: pictures, sound and reports. */
  readonly media: readonly Buffer[];
}

/** @param sdp of H.264 and A-law */
export function rtspConversation(sdp: string): RtspConversation {
  const bodies = [
    'Public: OPTIONS, DESCRIBE, SETUP, PLAY, GET_PARAMETER, TEARDOWN\r\n\r\n',
    `Content-Base: rtsp://127.0.0.1/live/\r\nContent-Length: ${Buffer.byteLength(sdp)}\r\n\r\n${sdp}`,
    'Session: 1;timeout=60\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n\r\n',
    'Session: 1\r\nTransport: RTP/AVP/TCP;unicast;interleaved=2-3\r\n\r\n',
    'Session: 1\r\nRTP-Info: url=rtsp://127.0.0.1/live/trackID=0;seq=0;rtptime=0,url=trackID=1;rtptime=0\r\n\r\n',
  ];
  return {
    answers: bodies.map((body, i) => Buffer.from(`RTSP/1.0 200 OK\r\nCSeq: ${i + 1}\r\n${body}`)),
    media: packets(),
  };
}

function packets(): Buffer[] {
  const all: Buffer[] = [];
  const put =
    (channel: number) =>
    (data: Buffer): void => {
      all.push(Buffer.concat([Buffer.of(0x24, channel, data.length >> 8, data.length & 255), data]));
    };
  const video = new RtpSender({ payloadType: 96, ssrc: 1, sequence: 0, output: put(0) });
  const audio = new RtpSender({ payloadType: 8, ssrc: 2, sequence: 0, output: put(2) });
  const packetizer = createPacketizer('H264');
  const track = videoTrack();
  samples(vector('h264-baseline.mp4')).forEach((data, i) => {
    packetizer.packetize({ track, data, key: i === 0, dts: 0, pts: 0, duration: 0 }, video);
    audio.send(160, false);
    video.timestamp += 3600;
    audio.timestamp += 160;
    if (i % 4 === 1)
      put(1)(
        writeSenderReport({ ssrc: 1, wallMs: i * 40, rtpTime: video.timestamp, packets: i, octets: 0, cname: 'x' }),
      );
  });
  return all;
}
