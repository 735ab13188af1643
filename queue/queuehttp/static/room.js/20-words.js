// Words.

const fill = (text, vars) => text.replace(/\{\{\.(\w+)\}\}/g, (_, k) => vars[k]);
const t = (id, vars = {}) => fill(boot.m[id], vars);
const n = (id, count) => {
  const forms = boot.m[id];
  return fill(forms[plurals.select(count)] || forms.other, { Count: numbers.format(count) });
};

function span(id, low, high) {
  return low >= high ? n(id, high) : t(id + "-range", { Low: numbers.format(low), High: numbers.format(high) });
}

function waitWords(eta) {
  if (!eta) return t("w.wait.unknown");
  if (eta.highSeconds <= 60) return t("w.wait.under");
  const low = Math.max(1, Math.floor(eta.lowSeconds / 60));
  const high = Math.ceil(eta.highSeconds / 60);
  if (high <= 90) return span("w.wait.minutes", low, high);
  if (low < 60) return t("w.wait.mixed", { Low: numbers.format(low), High: numbers.format(Math.ceil(high / 60)) });
  return span("w.wait.hours", Math.floor(low / 60), Math.ceil(high / 60));
}

function leftWords(stock) {
  if (stock.soldOut) return t("w.left.sold");
  if (stock.available == null) return t("w.left.unknown");
  if (stock.available === 0) return t("w.left.none");
  if (stock.total != null && stock.total >= stock.available) {
    return t("w.left-of", { Count: numbers.format(stock.available), Total: numbers.format(stock.total) });
  }
  return n("w.left", stock.available);
}

function calledWords(ms) {
  return ms < 30000 ? t("w.called.seconds") : n("w.called.minutes", Math.max(1, Math.floor((ms + 30000) / 60000)));
}
