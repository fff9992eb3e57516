import Type from 'typebox';
import { flag, integer, optional, text } from '../blocks.ts';
import { httpUrl } from './shared.ts';

const number = () => Type.Optional(integer());

const Ingress = optional({
  streamStatus: flag(false),
  minBitrate: number(),
  maxBitrate: number(),
  minFramerate: number(),
  maxFramerate: number(),
  minWidth: number(),
  maxWidth: number(),
  minHeight: number(),
  maxHeight: number(),
  minSamplerate: number(),
  maxSamplerate: number(),
  /** Milliseconds, in either direction. */
  maxAVOffset: number(),
  longKeyFrameInterval: flag(false),
  hasBFrames: flag(false, { aliases: ['hasBFrame'] }),
});

const Egress = optional({
  streamStatus: flag(false),
  llhlsReady: flag(false, { xml: 'LLHLSReady' }),
  hlsReady: flag(false, { xml: 'HLSReady' }),
});

const RULES = { ingress: Ingress, egress: Egress, internalQueueCongestion: flag(false) };

/** Conditions that raise an alert; also the root element of a RulesFile. */
export const AlertRules = Type.Object(RULES);

/** Target of alerts and the rules that raise them (docs/compatibility.md#alerts). */
export const Alert = optional({
  url: httpUrl(),
  secretKey: Type.Optional(text()),
  timeout: integer(3000, { min: 1 }),
  /** Replaces `rules`. Changes of the file take effect at run time. */
  rulesFile: Type.Optional(text()),
  rules: optional(RULES),
});
