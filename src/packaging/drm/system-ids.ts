/** System ids of `pssh` boxes and CPIX documents (DASH-IF, "Content Protection"). */
export const SYSTEM_IDS = {
  Widevine: 'edef8ba9-79d6-4ace-a3c8-27dcd51d21ed',
  PlayReady: '9a04f079-9840-4286-ab92-e65be0885f95',
  FairPlay: '94ce86fb-07ff-4f43-adb8-93d2fa968ca2',
} as const;

/** Text of 16 bytes (RFC 9562 section 4). */
export function uuid(id: Buffer): string {
  return id.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
