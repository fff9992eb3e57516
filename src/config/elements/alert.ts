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
  longKeyFrameInterval: flag(false),
  hasBFrames: flag(false, { aliases: ['hasBFrame'] }),
});

const Egress = optional({
  streamStatus: flag(false),
  llhlsReady: flag(false, { xml: 'LLHLSReady' }),
  hlsReady: flag(false, { xml: 'HLSReady' }),
});

const RULES = { ingress: Ingress, egress: Egress, internalQueueCongestion: flag(false) };

/** What is worth an alert; also the root element of a RulesFile. */
export const AlertRules = Type.Object(RULES);

/** Where alerts are sent, and for what (docs/compatibility.md#alerts). */
export const Alert = optional({
  url: httpUrl(),
  secretKey: Type.Optional(text()),
  timeout: integer(3000, { min: 1 }),
  /** Takes the place of `rules`, and is followed. */
  rulesFile: Type.Optional(text()),
  rules: optional(RULES),
});
