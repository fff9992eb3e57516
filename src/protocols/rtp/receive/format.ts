/** One payload type of a session description, as the receiver needs it. */
export interface RtpFormat {
  /** Encoding name (RFC 4855), in any case. */
  readonly encoding: string;
  /** Ticks of the RTP timestamp in a second. */
  readonly clockRate: number;
  /** Parameters of the format (`a=fmtp`), by names in lower case. */
  readonly parameters: Readonly<Record<string, string>>;
}

/** A whole number among the parameters; undefined when there is none. */
export function numberOf({ parameters }: RtpFormat, name: string): number | undefined {
  const text = parameters[name]?.trim();
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

/** Payload types that need no words in a session description (RFC 3551 section 6), as far as they are taken. */
export const STATIC_FORMATS: Readonly<Record<number, RtpFormat>> = {
  0: { encoding: 'PCMU', clockRate: 8000, parameters: {} },
  8: { encoding: 'PCMA', clockRate: 8000, parameters: {} },
  // samples are of 16 kHz, and the clock is not (RFC 3551 section 4.5.2)
  9: { encoding: 'G722', clockRate: 8000, parameters: {} },
  14: { encoding: 'MPA', clockRate: 90_000, parameters: {} },
  33: { encoding: 'MP2T', clockRate: 90_000, parameters: {} },
};
