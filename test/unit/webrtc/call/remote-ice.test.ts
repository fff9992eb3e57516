import test from 'ava';
import { SdpError } from '../../../../src/webrtc/remote-description.ts';
import { readRemoteIce } from '../../../../src/webrtc/call/remote-ice.ts';
import { H264_VIDEO, offerOf, OPUS_AUDIO } from '../../../support/webrtc/offers.ts';

test('credentials and addresses for UDP are read, each once', (t) => {
  const lines = [
    'a=candidate:1 1 UDP 2130706431 192.0.2.1 5000 typ host',
    'a=candidate:2 1 udp 1694498815 2001:db8::1 5001 typ srflx raddr 0.0.0.0 rport 0',
    'a=candidate:3 1 TCP 1518280447 192.0.2.1 9 typ host tcptype active',
    'a=candidate:4 2 UDP 2130706430 192.0.2.1 5002 typ host',
    'a=candidate:5 1 UDP 2130706431 0ad1.local 5003 typ host',
    'a=candidate:6 1 UDP 2130706431 ::ffff:192.0.2.9 5004 typ host',
  ];
  const both = [OPUS_AUDIO, H264_VIDEO].map((section) => ({ ...section, lines: [...(section.lines ?? []), ...lines] }));
  t.deepEqual(readRemoteIce(offerOf(both)), {
    usernameFragment: 'abcd',
    password: '0123456789012345678901',
    candidates: [
      { address: '192.0.2.1', port: 5000, priority: 2_130_706_431 },
      { address: '2001:db8::1', port: 5001, priority: 1_694_498_815 },
      { address: '192.0.2.9', port: 5004, priority: 2_130_706_431 },
    ],
  });
});

test('there are no more addresses than can be asked', (t) => {
  const lines = Array.from({ length: 100 }, (_, at) => `a=candidate:1 1 UDP 1 192.0.2.1 ${at + 1} typ host`);
  t.is(readRemoteIce(offerOf([{ ...OPUS_AUDIO, lines }])).candidates.length, 16);
});

test('an answer without credentials is refused', (t) => {
  t.throws(() => readRemoteIce(offerOf([OPUS_AUDIO], [])), { instanceOf: SdpError, message: /no ICE credentials/ });
});
