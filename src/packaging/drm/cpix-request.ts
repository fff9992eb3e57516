import { createHash } from 'node:crypto';
import type { DrmKey } from '../../config/drm-info.ts';
import type { DrmSystem } from '../../config/elements/drm.ts';
import { xmlAttribute } from '../../lib/xml-text.ts';
import { SYSTEM_IDS, uuid } from './system-ids.ts';

/** One key that a key server is asked for: it encrypts all tracks of a stream for one period. */
export interface KeyRequest {
  readonly contentId: string;
  /** Number of the period, from 0. */
  readonly period: number;
  readonly scheme: DrmKey['scheme'];
  readonly systems: readonly DrmSystem[];
  /** 16 bytes each, the same for the same content and period on every node. */
  readonly keyId: Buffer;
  readonly iv: Buffer;
}

/** Makes a request, with a KeyId of its own for each content and period, as SPEKE asks. */
export function keyRequest(facts: Omit<KeyRequest, 'keyId' | 'iv'>): KeyRequest {
  const { contentId, period } = facts;
  const digest = createHash('sha256')
    .update(JSON.stringify(['kiln', contentId, period]))
    .digest();
  const keyId = digest.subarray(0, 16);
  // UUID of version 8 (RFC 9562 section 5.8)
  keyId[6] = ((keyId[6] as number) & 0x0f) | 0x80;
  keyId[8] = ((keyId[8] as number) & 0x3f) | 0x80;
  return { ...facts, keyId, iv: digest.subarray(16) };
}

/**
 * Writes the document that asks for a key (DASH-IF CPIX 2.3; AWS, "SPEKE API v2"): empty elements are what the server is to fill
 * in. A period is named where there is more than the first.
 */
export function cpixRequest({ contentId, period, scheme, systems, keyId, iv }: KeyRequest): string {
  const kid = uuid(keyId);
  const signaling =
    '<cpix:HLSSignalingData playlist="media"></cpix:HLSSignalingData><cpix:HLSSignalingData playlist="master"></cpix:HLSSignalingData>';
  const wanted = systems.map((system) => {
    const box = system === 'FairPlay' ? '' : '<cpix:PSSH></cpix:PSSH>';
    return `<cpix:DRMSystem kid="${kid}" systemId="${SYSTEM_IDS[system]}">${box}${signaling}</cpix:DRMSystem>`;
  });
  const isRotating = period > 0;
  const periods = `<cpix:ContentKeyPeriodList><cpix:ContentKeyPeriod id="keyPeriod_${kid}" index="${period}"></cpix:ContentKeyPeriod></cpix:ContentKeyPeriodList>`;
  const filter = `<cpix:KeyPeriodFilter periodId="keyPeriod_${kid}"></cpix:KeyPeriodFilter>`;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>\n',
    `<cpix:CPIX contentId="${xmlAttribute(contentId)}" version="2.3" xmlns:cpix="urn:dashif:org:cpix" xmlns:pskc="urn:ietf:params:xml:ns:keyprov:pskc">`,
    `<cpix:ContentKeyList><cpix:ContentKey kid="${kid}" commonEncryptionScheme="${scheme}" explicitIV="${iv.toString('base64')}"></cpix:ContentKey></cpix:ContentKeyList>`,
    `<cpix:DRMSystemList>${wanted.join('')}</cpix:DRMSystemList>`,
    isRotating ? periods : '',
    `<cpix:ContentKeyUsageRuleList><cpix:ContentKeyUsageRule kid="${kid}" intendedTrackType="ALL">${isRotating ? filter : ''}`,
    '<cpix:VideoFilter></cpix:VideoFilter><cpix:AudioFilter></cpix:AudioFilter></cpix:ContentKeyUsageRule></cpix:ContentKeyUsageRuleList>',
    '</cpix:CPIX>',
  ].join('');
}
