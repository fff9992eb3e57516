import type { Report } from '../../../src/quality/report.ts';

interface PlayerReport {
  readonly title: string;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly report: Partial<Report>;
}

/** Reports as players send them, and what is read of them. */
export const PLAYER_REPORTS: readonly PlayerReport[] = [
  {
    title: 'hls.js 1.7.4, version 1 in the query,',
    query:
      'CMCD=bl%3D0%2Cbr%3D212%2Ccid%3D%22film+%5C%22x%5C%22%2C+1%22%2Cd%3D512%2Cdl%3D0%2Cmtp%3D500%2Cnor%3D%22part_0_11_2_video_jN4gxOh1_llhls.m4s%22%2Cot%3Da%2Crtp%3D1100%2Csf%3Dh%2Csid%3D%22my-session%22%2Cst%3Dll%2Csu',
    report: { bl: 0, br: 212, ot: 'a', sid: 'my-session' },
  },
  {
    title: 'hls.js 1.7.4, version 1 in the header,',
    headers: {
      'cmcd-status': 'bs,pr=1.1,rtp=1100',
      'cmcd-object': 'br=212,d=500,ot=v',
      'cmcd-session': 'cid="c",sf=h,sid="my-session",st=ll',
      'cmcd-request': 'bl=900,dl=800,mtp=600,su',
    },
    report: { bs: true, pr: 1.1, br: 212, ot: 'v', bl: 900, sid: 'my-session' },
  },
  {
    title: 'hls.js 1.7.4, version 2 in the query behind directives,',
    query:
      '_HLS_msn=24&_HLS_part=0&_HLS_skip=YES&CMCD=bl%3D%284700%29%2Cbr%3D%28212%29%2Ccid%3D%22c%22%2Cmtp%3D%281800%29%2Cot%3Dm%2Cpr%3D1.1%2Csf%3Dh%2Csid%3D%2217c5d79e-e67e-4be4-8231-246a4cf0d9db%22%2Csn%3D62%2Cst%3Dll%2Csta%3Dp%2Cv%3D2',
    report: { bl: 4700, br: 212, ot: 'm', pr: 1.1, sta: 'p', sid: '17c5d79e-e67e-4be4-8231-246a4cf0d9db' },
  },
  {
    title: 'hls.js 1.7.4, version 2 in the header,',
    headers: {
      'cmcd-status': 'bs,rtp=1100',
      'cmcd-object': 'br=(213),d=500,ot=v,tpb=(213.345)',
      'cmcd-session': 'cid="c",sf=h,sid="7683b432-34d9-407e-b5d4-7cd893068fcd",st=ll,v=2',
      'cmcd-request':
        'bl=(2500),dl=2500,mtp=(2500),nor=("part_0_29_2_video_jN4gxOh1_llhls.m4s"),pb=(213.345),sn=36,sta=r,su',
    },
    report: {
      bs: true,
      br: 213,
      ot: 'v',
      tpb: 213.345,
      bl: 2500,
      sta: 'r',
      sid: '7683b432-34d9-407e-b5d4-7cd893068fcd',
    },
  },
  {
    title: 'Shaka Player 5.2.12, version 1 in the query,',
    query:
      'CMCD=br%3D213%2Cd%3D500%2Cdl%3D0%2Cnor%3D%22seg_0_42_video_jN4gxOh1_llhls.m4s%22%2Cot%3Dv%2Csf%3Dh%2Csid%3D%226812d78e-57b8-460a-ba3e-704eb61c3e42%22%2Cst%3Dl%2Csu',
    report: { br: 213, ot: 'v', sid: '6812d78e-57b8-460a-ba3e-704eb61c3e42' },
  },
  {
    title: 'Shaka Player 5.2.12, version 2 in the query,',
    query:
      'CMCD=bl%3D1500%2Cbr%3D%28212%29%2Cd%3D500%2Cdl%3D1500%2Cltc%3D4564%2Cnor%3D%28%22part_0_303_1_video_jN4gxOh1_llhls.m4s%22%29%2Cot%3Dv%2Csf%3Dh%2Csid%3D%22f3a74154-f54d-4f37-ba6d-a3e27cbb5b31%22%2Csn%3D50%2Cst%3Dl%2Cv%3D2',
    report: { bl: 1500, br: 212, ltc: 4564, ot: 'v', sid: 'f3a74154-f54d-4f37-ba6d-a3e27cbb5b31' },
  },
  {
    title: 'Shaka Player 5.2.12, version 2 in the header,',
    headers: {
      'cmcd-object': 'br=(212),d=500,ot=v',
      'cmcd-session': 'sf=h,sid="3646b084-2e64-4bc9-bebe-abaf96782bd1",st=l,v=2',
      'cmcd-request': 'dl=0,ltc=114567,nor=("part_0_163_0_video_jN4gxOh1_llhls.m4s"),sn=16',
    },
    report: { br: 212, ltc: 114_567, ot: 'v', sid: '3646b084-2e64-4bc9-bebe-abaf96782bd1' },
  },
  // by https://developer.android.com/media/media3/exoplayer/cmcd and CTA-5004
  {
    title: 'ExoPlayer in header fields',
    headers: {
      'cmcd-object': 'br=840,d=2000,ot=v,tb=1000',
      'cmcd-request': 'bl=1800,dl=1800,mtp=500,nor="..%2Fpart_0_17_3_video_AbCdEfGh_llhls.m4s",su',
      'cmcd-session': 'cid="media-id",pr=1.05,sf=h,sid="5b1dd4d1-0d5c-4b8c-9c8e-0b6f2a7d8f11",st=l',
      'cmcd-status': 'bs,rtp=1700',
    },
    report: {
      br: 840,
      tb: 1000,
      bl: 1800,
      bs: true,
      pr: 1.05,
      ot: 'v',
      sid: '5b1dd4d1-0d5c-4b8c-9c8e-0b6f2a7d8f11',
    },
  },
  {
    title: 'ExoPlayer in the query',
    query:
      'CMCD=bl%3D1800%2Cbr%3D840%2Ccid%3D%22media-id%22%2Cd%3D2000%2Cmtp%3D500%2Cot%3Da%2Csf%3Dh%2Csid%3D%225b1dd4d1%22%2Cst%3Dl%2Csu%2Ctb%3D1000',
    report: { bl: 1800, br: 840, tb: 1000, ot: 'a', sid: '5b1dd4d1' },
  },
];
