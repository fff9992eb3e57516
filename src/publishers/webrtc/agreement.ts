import type { types } from 'mediasoup';
import type { RtpCodec } from '../../webrtc/codecs.ts';
import type { Selection } from './selection.ts';

export interface MediaPlan {
  readonly kind: 'video' | 'audio';
  readonly mid: string;
  readonly codec: RtpCodec;
  readonly extensions: readonly types.RtpHeaderExtension[];
}

export interface EventPlan {
  readonly mid: string;
  readonly protocol: string;
  /** Bytes of the largest message that the viewer takes. */
  readonly maxMessageSize: number;
}

export interface Agreement {
  readonly events?: EventPlan;
  readonly selection: Selection;
  readonly plans: readonly MediaPlan[];
}
