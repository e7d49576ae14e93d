/**
 * Types that share their name with another exported type, each with the reason. A name that is declared once again must be
 * removed from this list.
 */
export const SHARED_NAMES: Readonly<Record<string, string>> = {};
