-- Who is named as provider and as issuer of invoices in the FOCUS views, as the settings say. The views read tables only, so
-- the process that opens a source keeps them here. Null: the host of the billing API; the issuer is then the provider.
ALTER TABLE usage.source
  ADD COLUMN provider_name text,
  ADD COLUMN invoice_issuer_name text,
  ADD CONSTRAINT source_provider_name_form CHECK (provider_name ~ '\S'),
  ADD CONSTRAINT source_invoice_issuer_name_form CHECK (invoice_issuer_name ~ '\S');
