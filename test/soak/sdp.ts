import { H264_VIDEO, offerOf, OPUS_AUDIO } from '../support/webrtc/offers.ts';

const EXTENSIONS = [
  'a=extmap:1 urn:ietf:params:rtp-hdrext:sdes:mid',
  'a=extmap:2 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time',
  'a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01',
];

/** What a browser offers to a viewer's end: picture in H.264 and VP8 with retransmission, sound in Opus. */
export const OFFER = offerOf([
  {
    kind: 'video',
    types: [96, 97, 108, 109],
    lines: [
      ...EXTENSIONS,
      'a=rtcp-rsize',
      ...(H264_VIDEO.lines ?? []),
      'a=rtpmap:96 VP8/90000',
      'a=rtcp-fb:96 nack',
      'a=rtcp-fb:96 nack pli',
      'a=rtpmap:97 rtx/90000',
      'a=fmtp:97 apt=96',
      'a=rtcp-fb:108 goog-remb',
      'a=rtcp-fb:108 transport-cc',
      'a=rtcp-fb:108 nack',
      'a=rtcp-fb:108 nack pli',
      'a=rtpmap:109 rtx/90000',
      'a=fmtp:109 apt=108',
    ],
  },
  { ...OPUS_AUDIO, lines: [...(OPUS_AUDIO.lines ?? []), ...EXTENSIONS, 'a=fmtp:111 minptime=10;useinbandfec=1'] },
]);
